// Macros with decisions and conditions, in another file than their uses.
#pragma once
#define BETWEEN(x, low, high) ((x) > (low) && (x) < (high))
#define IS_ODD(x) (((x) & 1) != 0)
