# A version that is not there is not found.
find_package(devprof ${VERSION} REQUIRED)
