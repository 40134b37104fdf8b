# Checks the output of `devprof report` with other tools' readers and results.
#
#   report.py json REPORT              prints its contents as lines, for FileCheck
#   report.py lcov REPORT LLVM_COV     fails if two LCOV files differ in the count of a line or branch, or if genhtml would
#                                      refuse the first one
#   report.py sum REPORT FIRST SECOND  fails if the count of a line is not the sum of those in two other LCOV files
#   report.py agree JSON LCOV XML SONAR
#                                      fails if readers of LCOV and Cobertura find other totals than JSON has, or if the
#                                      files differ in which lines ran, or if SonarQube would refuse its file
#   report.py totals REPORT COLUMN LLVM_COV
#                                      fails if the numbers of functions, instances and branches differ from
#                                      `llvm-cov export`
#   report.py pages DIR                fails if a page is not valid HTML or has more than 1 MB, a link is broken, a page
#                                      loads an external resource, or a number differs from DIR/report.json
#   report.py documented REPORT TEXT   fails if a field's name is not in `backquotes` in the file TEXT
import json
import os
import re
import sys
from collections import Counter
from urllib.parse import unquote, urlsplit


def ratio(of):
    return f"{of['covered']}/{of['total']}"


def totals(of):
    return f"lines={ratio(of['lines'])} branches={ratio(of['branches'])} functions={ratio(of['functions'])}"


def show(path):
    report = json.load(open(path))
    assert report["format"] == "devprof report" and report["version"] == 1
    for note in report["notes"]:
        print(note["level"] + ":", note["text"])
        for item in note["items"]:
            print("    " + item)
    for column in report["columns"]:
        print("column", column["name"], "ran" if column["ran"] else "did not run", f"objects={column['code_objects']}", totals(column["totals"]))
    print("device", totals(report["device"]))
    for kernel in report["kernels"]:
        known = kernel["function"] is not None
        own = report["functions"][kernel["function"]] if known else None
        counted = f"count={own['count']} lines={ratio(own['lines'])} branches={ratio(own['branches'])}" if own else ""
        print("kernel", kernel["name"], kernel["state"], f"calls={kernel['calls']}", *kernel["architectures"], counted)
        assert (kernel["time"] is None) == (not report["traced"])
    for trace in report["traces"]:
        print("trace", trace["path"], f"calls={trace['calls']}")
    for index in range(len(report["traces"]) if len(report["traces"]) > 1 else 0):
        own = [one for kernel in report["kernels"] for one in kernel.get("by_trace", []) if one["trace"] == index]
        for what in ("calls", "time"):
            assert sum(one[what] for one in own) == report["traces"][index][what]
    for function in report["functions"]:
        name = os.path.basename(report["files"][function["file"]]["path"])
        print("function", function["name"], f"{name}:{function['line']}", *function["columns"])
    for file in report["files"]:
        print("file", os.path.basename(file["path"]), totals(file["device"]) if file["device"] else "-")
        for line in file["lines"]:
            if "not run" in line["columns"] and line["device"] is None:
                print("    only elsewhere:", line["number"])


def records(path):
    """Returns, for each file, the counts of lines and the counts of branches by line, and lcov_cobertura's summary."""
    from lcov_cobertura import LcovCobertura

    text = open(path).read()
    summary = LcovCobertura(text).parse()["summary"]
    files = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            lines, branches = files.setdefault(rest, ({}, {}))
        elif kind == "DA":
            number, count = rest.split(",")[:2]
            lines[int(number)] = int(count)
        elif kind == "BRDA":
            number, block, branch, count = rest.split(",")
            branches.setdefault(int(number), []).append(count)
    return files, summary


def lcov(actual, expected):
    (actual, summary), (expected, _) = records(actual), records(expected)
    assert actual.keys() == expected.keys() and actual, (actual.keys(), expected.keys())
    for file in actual:
        (lines, branches), (expected_lines, expected_branches) = actual[file], expected[file]
        for number in sorted(lines.keys() | expected_lines.keys()):
            one, two = lines.get(number), expected_lines.get(number)
            assert one == two, f"{file}: line {number}: devprof {one}, llvm-cov {two}"
        # Branches that genhtml refuses at their line are at another one: see conditions_by_line in lcov.rs.
        ran = lambda counts: any(count not in "-0" for count in counts)
        for number, counts in expected_branches.items():
            if ran(counts) == (lines[number] > 0):
                missing = Counter(counts) - Counter(branches.get(number, []))
                assert not missing, f"{file}: branches of line {number}: devprof {branches.get(number)}, llvm-cov {counts}"
        every = lambda of: Counter(count for counts in of.values() for count in counts)
        assert every(branches) == every(expected_branches), (file, branches, expected_branches)
        for number, counts in branches.items():
            assert ran(counts) == (lines[number] > 0), f"{file}: genhtml refuses the branches of line {number}: {counts}"
    lines = [count for own, _ in actual.values() for count in own.values()]
    assert summary["lines-total"] == len(lines), summary
    assert summary["lines-covered"] == sum(count > 0 for count in lines), summary


def sums(actual, *expected):
    actual, _ = records(actual)
    lines = {}
    for path in expected:
        for file, (own, _) in records(path)[0].items():
            for number, count in own.items():
                lines.setdefault(file, {}).setdefault(number, 0)
                lines[file][number] += count
    assert {file: own for file, (own, _) in actual.items()} == lines


def genhtml(path):
    """The totals as genhtml computes them: it ignores the sums in the file, identifies functions by their names, and
    takes the first comma as the end of a name."""
    totals = {"lines": [0, 0], "branches": [0, 0], "functions": [0, 0]}
    functions, branches, lines = {}, {}, {}
    for line in open(path).read().splitlines():
        kind, _, rest = line.partition(":")
        if kind == "FN":
            functions.setdefault(rest.split(",")[1], 0)
        elif kind == "FNDA":
            count, name = rest.split(",")[:2]
            functions[name] += int(count)
        elif kind == "BRDA":
            number, block, branch, count = rest.split(",")
            key = number, block, branch
            branches[key] = branches.get(key, 0) + (0 if count == "-" else int(count))
        elif kind == "DA":
            number, count = rest.split(",")
            lines[number] = lines.get(number, 0) + int(count)
        elif kind == "end_of_record":
            for what, own in (("lines", lines), ("branches", branches), ("functions", functions)):
                totals[what][0] += sum(count > 0 for count in own.values())
                totals[what][1] += len(own)
            functions, branches, lines = {}, {}, {}
    return totals


def agree(report, lcov, xml, sonar):
    import xml.etree.ElementTree as etree
    from diff_cover.git_path import GitPathTool
    from diff_cover.violationsreporters.violations_reporter import LcovCoverageReporter, XmlCoverageReporter

    report = json.load(open(report))
    expected = report["combined"] or report["device"]
    for what, (covered, total) in genhtml(lcov).items():
        assert expected[what] == {"covered": covered, "total": total}, (what, expected[what], covered, total)
    tree = etree.parse(xml).getroot()
    for what in ("lines", "branches"):
        assert tree.get(what + "-covered") == str(expected[what]["covered"]), what
        assert tree.get(what + "-valid") == str(expected[what]["total"]), what
    hits = [int(line.get("hits")) for line in tree.findall(".//class/lines/line")]
    assert len(hits) == expected["lines"]["total"] and sum(hit > 0 for hit in hits) == expected["lines"]["covered"]
    methods = [int(line.get("hits")) for line in tree.findall(".//method/lines/line")]
    assert sum(hit > 0 for hit in methods) == expected["functions"]["covered"], methods
    assert len(methods) == expected["functions"]["total"], methods
    source = tree.find("sources/source").text
    # Without git.
    GitPathTool._root = GitPathTool._cwd = source
    from_xml = XmlCoverageReporter([tree], [source])
    from_lcov = LcovCoverageReporter([LcovCoverageReporter.parse(lcov)], [])
    for file in report["files"]:
        path = file["location"]
        name = os.path.relpath(path, source)
        one = {violation.line for violation in from_xml.violations(name)}
        two = {violation.line for violation in from_lcov.violations(path)}
        missed = {line["number"] for line in file["lines"] if counts(line) and not any(counts(line))}
        assert one == missed, (path, one, missed)
        # For LCOV, diff-cover takes a line as run if a branch on it was taken, such as the branch of a default label.
        taken = {line["number"] for line in file["lines"] if "branches" in line}
        assert two <= missed <= two | taken, (path, two, missed)
    cobertura = {
        one.get("filename"): {line.get("number"): (int(line.get("hits")) > 0, line.get("condition-coverage")) for line in one.findall("lines/line")}
        for one in tree.findall(".//class")
    }
    assert cobertura == sonar_lines(sonar)
    print(len(report["files"]), "files agree:", totals(expected))


def sonar_lines(path):
    """For each file, whether the lines ran and how many of their branches, in the words of Cobertura. Fails where SonarQube's
    parser does (GenericCoverageReportParser): an attribute that is missing, not known or no number, and a line that is there twice."""
    import xml.etree.ElementTree as etree

    root = etree.parse(path).getroot()
    assert (root.tag, root.attrib) == ("coverage", {"version": "1"})
    files = {}
    for file in root:
        assert file.tag == "file" and file.keys() == ["path"] and file.get("path") not in files, file.attrib
        lines = files[file.get("path")] = {}
        for line in file:
            assert line.tag == "lineToCover" and int(line.get("lineNumber")) > 0 and line.get("lineNumber") not in lines, line.attrib
            branches = None
            if line.keys() != ["lineNumber", "covered"]:
                assert line.keys() == ["lineNumber", "covered", "branchesToCover", "coveredBranches"], line.attrib
                total, covered = int(line.get("branchesToCover")), int(line.get("coveredBranches"))
                assert 0 <= covered <= total and total > 0, line.attrib
                branches = f"{100 * covered // total}% ({covered}/{total})"
            lines[line.get("lineNumber")] = ({"true": True, "false": False}[line.get("covered")], branches)
    return files


def counts(line):
    return [count for count in line["columns"] if isinstance(count, int)]


def compare_totals(path, column, expected):
    report = json.load(open(path))
    index = next(index for index, one in enumerate(report["columns"]) if one["name"] == column)
    actual = report["columns"][index]["totals"]
    instances = [one["columns"][index] for one in report["functions"] if one["columns"][index] is not None]
    actual["instantiations"] = {"covered": sum(count > 0 for count in instances), "total": len(instances)}
    expected = json.load(open(expected))["data"][0]["totals"]
    for what in ("functions", "instantiations", "branches"):
        other = {"covered": expected[what]["covered"], "total": expected[what]["count"]}
        assert actual[what] == other, (what, actual[what], other)


def pages(top):
    import gc

    import html5lib

    # The trees of all pages stay: to look for garbage in them was a fifth of the time.
    gc.disable()
    report = json.load(open(os.path.join(top, "report.json")))
    trees = {}
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".html"):
                path = os.path.relpath(os.path.join(folder, name), top)
                assert os.path.getsize(os.path.join(top, path)) <= 1_000_000, path
                parser = html5lib.HTMLParser(namespaceHTMLElements=False)
                trees[path] = parser.parse(open(os.path.join(top, path), "rb").read())
                assert not parser.errors, (path, parser.errors[:3])
    allowed = set(
        "a b body br caption code details div footer h1 h2 head html input label li link main meta nav p script section"
        " span style summary table tbody td tfoot th thead title tr ul".split()
    )
    ids = {path: {element.get("id") for element in tree.iter() if element.get("id")} for path, tree in trees.items()}
    links = set()
    for path, tree in trees.items():
        assert len(tree.findall(".//title")) == 1 and tree.get("lang") == "en", path
        for element in tree.iter():
            if not isinstance(element.tag, str):
                continue
            assert element.tag in allowed, (path, element.tag)
            assert element.get("src") is None and not any(name.startswith("on") for name in element.attrib), (path, element.attrib)
            if element.tag == "table":
                assert element.find("caption") is not None and element.findall(".//th[@scope='col']"), path
            href = element.get("href")
            if href is None or (element.tag == "link" and href == "data:,"):
                continue
            parts = urlsplit(href)
            assert not parts.scheme and not parts.netloc, (path, href)
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            assert target in trees, (path, href)
            assert not parts.fragment or parts.fragment in ids[target], (path, href)
            links.add(target)
    assert links == set(trees), set(trees) - links

    def text(element):
        return "".join(element.itertext()).replace("\u202f", "").strip()

    def table(path, name):
        """The rows of a table on a page and its further pages."""
        rows, page, number = [], path, 1
        while page in trees:
            found = [one for one in trees[page].iter("table") if text(one.find("caption")) == name]
            rows += [[text(cell) for cell in row] for row in found[0].findall("./tbody/tr")] if found else []
            number += 1
            page = f"{path[:-5]}.{number}.html"
        return rows

    def first_page(prefix):
        """The others have a number or a word in front of the extension."""
        return min((path for path in trees if path.startswith(prefix)), key=len, default=None)

    def listed(path, name):
        """The rows of a table on the first page, or of its own page if it is long."""
        first = table("index.html", name)
        rows = table(path, name) if path in trees else first
        assert first and first == rows[: len(first)] or not rows, name
        return rows

    def named(cell, name):
        """Whether the name in a cell is this one, complete or shortened."""
        return cell.startswith(name) or (len(name) > 100 and cell.startswith(name[:60]) and name[-30:] in cell)

    def ends(cell, of):
        return cell.endswith(ratio(of)) if of["total"] else cell == "–"

    # Code that was compiled for MC/DC has a column for it, after the branches.
    has_mcdc = any("decisions" in line for file in report["files"] for line in file["lines"])
    measured = ["lines", "branches"] + has_mcdc * ["mcdc"]
    width = len(measured)

    cards = {text(card.find("h2")): text(card) for card in trees["index.html"].findall(".//div[@class='card']")}
    for what in ("Lines", "Branches", "Functions"):
        of = report["device"][what.lower()]
        assert f"{of['covered']} of {of['total']}" in cards[what], cards[what]
    assert ("MC/DC" in cards) == has_mcdc
    ran = [kernel for kernel in report["kernels"] if kernel["state"] in ("covered", "not-in-trace", "not-counted")]
    rows = listed("kernels.html", "Kernels that ran")
    assert len(rows) == len(ran)
    for row, kernel in zip(rows, ran):
        own = report["functions"][kernel["function"]]
        assert named(row[0], kernel["name"]) and row[-1] == str(own["count"]), row
        assert all(ends(cell, own[what]) for cell, what in zip(row[-1 - width : -1], measured)), row
        assert not report["traced"] or row[1] == str(kernel["calls"]), row
    plain = [kernel for kernel in report["kernels"] if kernel["state"] in ("not-instrumented", "runtime")]
    rows = listed("not-instrumented.html", "Kernels that ran and are not instrumented")
    assert [named(row[0], kernel["name"]) for row, kernel in zip(rows, plain)] == len(plain) * [True], rows
    never = [kernel for kernel in report["kernels"] if kernel["state"] == "never-ran"]
    rows = listed("never-ran.html", "Instrumented kernels that never ran")
    assert len(rows) == len(never) and all(named(row[0], kernel["name"]) for row, kernel in zip(rows, never)), rows
    rows = listed("files.html", "Files")
    assert len(rows) == len(report["files"])
    for row, file in zip(rows, report["files"]):
        for cell, what in zip(row[1:], measured + ["functions"]):
            assert ends(cell, file["device"][what]) if file["device"] else cell == "–", row
    definitions = {}
    for function in report["functions"]:
        definitions.setdefault((function["file"], function["line"], function["column"]), []).append(function)
    rows = table("functions.html", "Functions")
    assert len(rows) == len(definitions)
    show = lambda cell: "" if cell is None else str(cell)
    for index, (row, own) in enumerate(zip(rows, definitions.values())):
        columns = [[cell for cell in column if cell is not None] for column in zip(*(one["columns"] for one in own))]
        sums = [sum(column) if column and all(isinstance(cell, int) for cell in column) else column and column[0] for column in columns]
        assert row[2:-width] == [show(cell if cell != [] else None) for cell in sums], (row, sums)
        assert len(own) > 1 or named(row[0], own[0]["name"]), (row, own)
        page = first_page(f"instances/{index}-")
        if len(own) == 1:
            assert "instance" not in row[0] and not page, row
            continue
        ran = sum(any(isinstance(cell, int) and cell > 0 for cell in one["columns"]) for one in own)
        assert f"{len(own)} instances, {ran} ran" in row[0], (row, len(own), ran)
        assert page or all(one["name"][:60] in row[0] for one in own), row
        for instance, one in zip(table(page, "Instances") if page else [], own, strict=bool(page)):
            assert named(instance[0], one["name"]), (instance, one)
            assert instance[1:-width] == [show(cell) for cell in one["columns"]], (instance, one)
            assert all(ends(cell, one[what]) for cell, what in zip(instance[-width:], measured)), (instance, one)
    for index, file in enumerate(report["files"]):
        page = first_page(f"files/{index}-")
        known = {str(line["number"]): line for line in file["lines"]}
        heads = [text(head) for head in trees[page].findall(".//table[@class='source']/thead/tr/th")]
        names = [column["name"] for column in report["columns"]]
        for row in table(page, "Source"):
            if row[0] and row[0] in known:
                line = known.pop(row[0])
                for head, cell in zip(heads[1:-1], row[1:]):
                    own = line["device"] if head == "all" else line["columns"][names.index(head)]
                    assert cell == ("" if own is None else str(own)) or (own == "not run" and cell == ""), (page, row, own)
        assert not known, (page, sorted(known)[:3])
        number = sum(len(line.get("decisions", [])) for line in file["lines"])
        summaries = [text(one) for one in trees[page].iter("summary") if text(one).startswith("MC/DC")]
        assert len(summaries) == number or f"{page[:-5]}.2.html" in trees, (page, summaries)
    print(f"{len(trees)} pages")


def documented(path, text):
    names = set()

    def collect(value):
        if isinstance(value, dict):
            names.update(value)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            collect(one)

    collect(json.load(open(path)))
    quoted = set(re.findall(r"`([a-z_]+)`", open(text).read()))
    assert names <= quoted, names - quoted
    print(*sorted(names))


{"json": show, "documented": documented, "lcov": lcov, "sum": sums, "agree": agree, "totals": compare_totals, "pages": pages}[sys.argv[1]](*sys.argv[2:])
