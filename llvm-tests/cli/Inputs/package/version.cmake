# Requests a version that is not installed.
find_package(devprof ${VERSION} REQUIRED)
