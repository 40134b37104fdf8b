# To be sourced. once DIR COMMAND…: runs COMMAND, which installs something in DIR, unless it has succeeded before. Tests run
# at the same time, so processes wait for each other.
once() {
    local dir=$1 lock
    shift
    mkdir -p "$dir"
    exec {lock}>"$dir/lock"
    flock "$lock"
    if [[ ! -e $dir/installed ]]; then
        "$@"
        touch "$dir/installed"
    fi
    exec {lock}>&-
}
