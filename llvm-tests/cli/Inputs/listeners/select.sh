# select.sh DEVPROF FORMAT OPTION...: changes kernels, and lists which tests ./tests selects with what `devprof affected` prints. OPTION
# makes it list them. commit: puts the kernels into a git tree, before they are compiled.
if [ "$1" = commit ]; then
    git init --quiet
    git add kernels.hip
    git -c user.name=a -c user.email=a commit --quiet --message kernels
    echo '*' > .gitignore
    exit
fi
devprof=$1 format=$2
shift 2
for changed in 25 6 4; do
    sed -i "s/= [$changed];/= 9;/" kernels.hip
    echo "== $changed"
    ./tests "$("$devprof" affected --since HEAD --format "$format")" "$@" || echo "status $?"
    git checkout --quiet kernels.hip
done
