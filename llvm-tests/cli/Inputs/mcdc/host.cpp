// host FIRST-LAST: evaluates the decisions for these inputs.
#define FUNCTION static __attribute__((noinline))
#include "decisions.h"
#include <stdio.h>

int main(int count, char **arguments) {
    unsigned first, last;
    int sum = 0;
    if (count != 2 || sscanf(arguments[1], "%u-%u", &first, &last) != 2)
        return 2;
    for (unsigned i = first; i <= last; i++)
        sum += decide(i);
    return sum < 0;
}
