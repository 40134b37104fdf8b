/* devprof: names the tests of GoogleTest, for `devprof cover --per-test`. Include this file in one source of the test
 * program, before or after gtest/gtest.h, or with the compiler's option -include. Nothing else is needed, and the program
 * runs with and without devprof. C++11 or later, as GoogleTest requires it. */
#ifndef DEVPROF_GTEST_H
#define DEVPROF_GTEST_H

#include <gtest/gtest.h>
#include <string>

extern "C" __attribute__((weak)) int devprof_test(const char *name);

namespace devprof {

class GtestListener : public ::testing::EmptyTestEventListener {
    void OnTestStart(const ::testing::TestInfo &test) override {
        if (devprof_test)
            devprof_test((std::string(test.test_suite_name()) + "." + test.name()).c_str());
    }
    void OnTestEnd(const ::testing::TestInfo &) override {
        if (devprof_test)
            devprof_test(nullptr);
    }
};

/* The same object in all files that include this header. GoogleTest owns the listener. */
inline bool add_gtest_listener() {
    static const bool added = [] {
        ::testing::UnitTest::GetInstance()->listeners().Append(new GtestListener);
        return true;
    }();
    return added;
}

namespace {
const bool gtest_listener_added __attribute__((unused)) = add_gtest_listener();
}

} // namespace devprof

#endif
