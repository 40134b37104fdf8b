// The least that a counter update can cost: the device runtime with a plain store in place of the atomic addition. The
// counts are wrong.
#define __scoped_atomic_fetch_add(address, value, order, scope) (*(volatile devprof_global_counter *)(address) = (value))
