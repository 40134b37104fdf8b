# Functions for the RUN lines of programs with a trace: `build` copies this file to lib/. All but `traced` and `has` print one
# line about the last trace.

# traced NAME PROGRAM [ARG…]: runs a program with the trace NAME.trace, which is exported to NAME.jsonl.
traced() {
    local status=0
    name=$1
    shift
    { DEVPROF_TRACE=$name.trace "$@"; } 2>"$name.err" || status=$?
    # Without the shell's own line about a signal.
    grep -v ': line .*Killed' "$name.err" >&2 || true
    echo "$name: exit status $status"
    exported
}
exported() { "$ROOT/bin/devprof" export "$name.trace" -o "$name.jsonl" -f json >"$name.export" 2>&1 || cat "$name.export"; }
# has PATTERN: how many records match.
has() { grep -cE "$1" "$name.jsonl" || true; }
# kernels NAME, calls NAME, copies PATTERN [LESS]: how many there are, without LESS of them.
kernels() { echo "kernels $1: $(($(has "\"type\":\"dispatch\".*\"kernel_name\":\"[^\"]*$1") - ${2-0}))"; }
calls() { echo "calls $1: $(($(has "\"type\":\"call\".*\"name\":\"$1\"") - ${2-0}))"; }
copies() { echo "copies $1: $(($(has "\"type\":\"copy\".*\"direction\":\"$1") - ${2-0}))"; }
unfinished() { echo "unfinished: $(has '"type":"dispatch".*unfinished')"; }
# Otherwise CUPTI's correlation ids differ from the callbacks' ids (src/runtime/trace/cuda/calls.rs).
correlated() { echo "without a call: $(grep -E '"type":"(dispatch|copy)"' "$name.jsonl" | grep -vc '"correlation":[1-9]' || true)"; }
# Otherwise CUPTI's times are not between submission and observation.
clocks() { echo "on another clock than the trace's: $(grep -E '"type":"(dispatch|copy)"' "$name.jsonl" | grep -vc '"clock":"system"' || true)"; }
