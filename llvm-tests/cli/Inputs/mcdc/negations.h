// Decisions with negations, of the conditions a, b and c. mcdc.py evaluates them as well.
FUNCTION int negations(unsigned i) {
    bool a = i & 1, b = i & 2, c = i & 4;
    int result = 0;
    if (a && !(b || c))
        result |= 1;
    if (!(a && b) && c)
        result |= 2;
    if (!(a && b && c))
        result |= 4;
    if (a || !(b && c))
        result |= 8;
    if (!(a || b) || c)
        result |= 16;
    if (!a && (!b || !c))
        result |= 32;
    if (a && !(!(b || /* the last || one */ c)))
        result |= 64;
    result |= !(a &&
                !(b || c))
                  ? 128
                  : 0;
    if (a and not(b or not c))
        result |= 256;
    return result;
}
