# Compares the MC/DC of a report with `llvm-cov export`, and with the definition of an independence pair.
#
#   mcdc.py agree REPORT COLUMN EXPORT   fails if a decision of a function has other executed vectors or covered conditions than in EXPORT,
#                                        or if llvm-cov's totals are not what its rule makes of them. The results of vectors may be
#                                        others if they were computed from the source; then so may be the covered conditions
#   mcdc.py evaluate REPORT FIRST LAST   fails if the decisions of negations.h have other vectors and results than for these inputs
#   mcdc.py totals REPORT                fails if a total is not the sum of the decisions; prints the totals of the columns
#   mcdc.py equal REPORT COLUMN REPORT COLUMN
#                                        fails if the decisions of a column in headers have other vectors in the other report's column
#   mcdc.py lcov LCOV REPORT             fails if readers of LCOV find other totals than the report has
import collections
import json
import re
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


def text(vector):
    return "".join("-FT"[1 + value if value is not None else 0] for value in vector["conditions"]) + "FT"[vector["result"]]


def is_pair(one, other, condition):
    """Whether two vectors show the effect of a condition."""
    both = zip(one["conditions"], other["conditions"])
    different = [n for n, (a, b) in enumerate(both) if None not in (a, b) and a != b]
    return one["result"] != other["result"] and different == [condition]


def shown(evaluation):
    """For each condition whether it has a pair, after a check of the pair, or None if it is constant."""
    vectors, found = evaluation["vectors"], []
    for condition, pair in enumerate(evaluation["pairs"]):
        any_pair = any(is_pair(one, other, condition) for one in vectors for other in vectors)
        if pair == "constant":
            found.append(None)
        elif pair == "missing":
            assert not any_pair, (evaluation, condition)
            found.append(False)
        else:
            assert is_pair(vectors[pair[0]], vectors[pair[1]], condition), (evaluation, condition)
            found.append(True)
    return found


def decisions(report):
    """The file and each decision in it."""
    for file in report["files"]:
        for line in file["lines"]:
            for decision in line.get("decisions", []):
                yield file, decision


def evaluations(report, column):
    """The vectors and conditions by symbol, file and position."""
    index = [one["name"] for one in report["columns"]].index(column)
    found = collections.defaultdict(list)
    for file, decision in decisions(report):
        for own in decision["evaluations"]:
            if own["column"] == index:
                key = own["symbol"], file["path"], *decision["start"], *decision["end"]
                vectors = sorted(map(text, own["vectors"]))
                assert len(set(vectors)) == len(vectors)
                found[key].append((vectors, shown(own), own["results_from_source"]))
    return {key: sorted(own, key=str) for key, own in found.items()}


def symbol_of(function):
    """Without the prefix that names the file of an internal function."""
    return function["name"].rpartition(":")[2].rpartition(";")[2]


def agree(path, column, export):
    report, exported = load(path), load(export)["data"][0]
    actual, expected = evaluations(report, column), collections.defaultdict(list)
    groups = collections.defaultdict(list)
    for function in exported["functions"]:
        symbol = symbol_of(function)
        for *span, _, _, file, _, _, covered, vectors in function["mcdc_records"]:
            key = symbol, function["filenames"][file], *span
            expected[key].append((sorted(map(text, vectors)), covered))
        groups[tuple(function["regions"][0][:2]) + (function["filenames"][0],)].append(function)
    assert actual and actual.keys() == expected.keys(), actual.keys() ^ expected.keys()
    constant, others = {}, 0
    values = lambda vectors: [vector[:-1] for vector in vectors]
    for key, own in expected.items():
        assert len(own) == len(actual[key]), (key, own, actual[key])
        # Constants have no pair in llvm-cov's output.
        plain = [(vectors, [bool(one) for one in covered]) for vectors, covered, _ in actual[key]]
        if sorted(plain) != sorted(own):
            others += 1
            assert all(computed for *_, computed in actual[key]), (key, plain, own)
            assert sorted(values(vectors) for vectors, _ in plain) == sorted(values(vectors) for vectors, _ in own), (key, plain, own)
            assert sorted(plain)[0][0] != sorted(own)[0][0], (key, plain, own)
        constant[key] = [sum(one is None for one in covered) for _, covered, _ in actual[key]]
    # llvm-cov's summary: the decisions in the function's own file, but not in the text of macros; of a template the largest numbers
    # that an instance has.
    total = covered_total = 0
    for functions in groups.values():
        instances = []
        for function in functions:
            symbol = symbol_of(function)
            number = covered = 0
            for *span, _, _, file, _, _, pairs, _ in function["mcdc_records"]:
                if file == 0:
                    key = symbol, function["filenames"][file], *span
                    number += len(pairs) - constant[key].pop(0)
                    covered += sum(pairs)
            instances.append((covered, number))
        covered_total += max(own[0] for own in instances)
        total += max(own[1] for own in instances)
    own = exported["totals"]["mcdc"]
    assert (own["covered"], own["count"]) == (covered_total, total), (own, covered_total, total)
    print(f"{sum(map(len, actual.values()))} decisions agree, {others} with other results; llvm-cov has {covered_total}/{total}")


def evaluate(path, first, last):
    report = load(path)
    number = 0
    for file, decision in decisions(report):
        if not file["path"].endswith("/negations.h"):
            continue
        with open(file["path"]) as source:
            lines = source.read().splitlines()
        starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
        at = lambda position: starts[position[0] - 1] + position[1] - 1
        # In Python, with v(n) in place of condition n.
        python = lambda text: text.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
        whole, formula, end = "\n".join(lines), "", at(decision["start"])
        own = [whole[at(one["start"]) : at(one["end"])] for one in decision["conditions"]]
        for n, condition in sorted(enumerate(decision["conditions"]), key=lambda one: at(one[1]["start"])):
            formula += whole[end : at(condition["start"])] + f"v({n})"
            end = at(condition["end"])
        formula = re.sub(r"/\*.*?\*/", "", formula + whole[end : at(decision["end"])])
        expected = set()
        for i in range(int(first), int(last) + 1):
            names = {"a": bool(i & 1), "b": bool(i & 2), "c": bool(i & 4)}
            vector = {"conditions": [None] * len(own)}

            def v(n):
                vector["conditions"][n] = eval(python(own[n]).strip(), names)
                return vector["conditions"][n]

            vector["result"] = bool(eval(" ".join(python(formula).split()), {"v": v}))
            expected.add(text(vector))
        for one in decision["evaluations"]:
            actual = set(map(text, one["vectors"]))
            assert one["results_from_source"] and actual == expected, (formula, actual, expected)
            number += 1
    assert number
    print(f"{number} decisions have the vectors of the source")


def ratio(effects):
    known = [effect for effect in effects if effect is not None]
    return {"covered": sum(known), "total": len(known)}


def totals(path):
    report = load(path)
    columns = report["columns"]
    effects = collections.defaultdict(list)
    for file, decision in decisions(report):
        for n, condition in enumerate(decision["conditions"]):
            own = []
            for column, effect in enumerate(condition["columns"]):
                evaluated = [shown(one)[n] for one in decision["evaluations"] if one["column"] == column]
                known = [one for one in evaluated if one is not None]
                assert effect == (any(known) if known else None), (decision, n)
                effects[columns[column]["name"]].append(effect)
                own += [] if effect is None or columns[column]["host"] else [effect]
            assert condition["device"] == (any(own) if own else None), (decision, n)
            both = [effect for effect in condition["columns"] if effect is not None]
            effects["device"].append(condition["device"])
            effects["combined"].append(any(both) if both else None)
            effects[file["path"]].append(condition["device"])
    for column in columns:
        assert column["totals"]["mcdc"] == ratio(effects[column["name"]]), column
    for what in ("device", "combined"):
        assert report[what] is None or report[what]["mcdc"] == ratio(effects[what]), (what, report[what], ratio(effects[what]))
    for file in report["files"]:
        assert file["device"] is None or file["device"]["mcdc"] == ratio(effects[file["path"]]), file["path"]
    show = lambda own: f"{own['covered']}/{own['total']}"
    print(*[f"{column['name']} {show(column['totals']['mcdc'])}" for column in columns], f"device {show(report['device']['mcdc'])}", sep=", ")


def equal(path, column, other, other_column):
    def in_headers(path, column):
        """The vectors by position: symbols of host and device differ, and so do the files of the programs."""
        found = collections.defaultdict(list)
        for (_, file, *position), own in evaluations(load(path), column).items():
            if file.endswith(".h"):
                found[file, *position] += own
        return found

    one, two = in_headers(path, column), in_headers(other, other_column)
    assert one and one.keys() == two.keys(), one.keys() ^ two.keys()
    for key in one:
        assert sorted(map(str, one[key])) == sorted(map(str, two[key])), (key, one[key], two[key])
    print(f"{len(one)} positions have the same vectors")


def lcov(path, report):
    # lcov keeps conditions by line, number of conditions and index, and counts both changes of each.
    groups, sums = collections.defaultdict(dict), collections.Counter()
    with open(path) as file:
        for line in file:
            kind, _, rest = line.rstrip("\n").partition(":")
            if kind == "SF":
                source = rest
            elif kind == "MCDC":
                number, size, sense, taken, index, expression = rest.split(",", 5)
                group = groups[source, number, size]
                assert (index, sense) not in group and expression, line
                group[index, sense] = int(taken)
            elif kind in ("MCF", "MCH"):
                sums[kind] += int(rest)
    for (_, _, size), group in groups.items():
        assert sorted(group) == sorted((str(n), sense) for n in range(int(size)) for sense in "ft"), group
    taken = [taken for group in groups.values() for taken in group.values()]
    of = load(report)
    of = (of["combined"] or of["device"])["mcdc"]
    assert sums == {"MCF": len(taken), "MCH": sum(taken)} == {"MCF": 2 * of["total"], "MCH": 2 * of["covered"]}, (sums, of)
    print(f"LCOV has {of['covered']}/{of['total']}")


{"agree": agree, "evaluate": evaluate, "totals": totals, "equal": equal, "lcov": lcov}[sys.argv[1]](*sys.argv[2:])
