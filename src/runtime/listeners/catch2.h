/* devprof: names the tests of Catch2 (version 2 or 3), for `devprof cover --per-test`. Include this file in one source of
 * the test program. For version 2, include it after catch.hpp in the source that defines CATCH_CONFIG_MAIN or
 * CATCH_CONFIG_RUNNER. The program runs with and without devprof. */
#ifndef DEVPROF_CATCH2_H
#define DEVPROF_CATCH2_H

#ifndef CATCH_VERSION_MAJOR
#if __has_include(<catch2/reporters/catch_reporter_event_listener.hpp>)
#include <catch2/catch_test_case_info.hpp>
#include <catch2/catch_version_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#include <catch2/catch.hpp>
#endif
#elif CATCH_VERSION_MAJOR >= 3
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#endif

extern "C" __attribute__((weak)) int devprof_test(const char *name);

namespace devprof {

#if CATCH_VERSION_MAJOR >= 3
typedef Catch::EventListenerBase CatchListenerBase;
#else
typedef Catch::TestEventListenerBase CatchListenerBase;
#endif

struct CatchListener : CatchListenerBase {
    using CatchListenerBase::CatchListenerBase;
    void testCaseStarting(const Catch::TestCaseInfo &test) override {
        CatchListenerBase::testCaseStarting(test);
        if (devprof_test)
            devprof_test(test.name.c_str());
    }
    void testCaseEnded(const Catch::TestCaseStats &stats) override {
        if (devprof_test)
            devprof_test(nullptr);
        CatchListenerBase::testCaseEnded(stats);
    }
};

CATCH_REGISTER_LISTENER(CatchListener)

} // namespace devprof

#endif
