// The command of the clang that has loaded a plugin.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/StringSaver.h"
#include <algorithm>

namespace {

using namespace llvm;

// The words of clang's command.
class CommandLine {
public:
    CommandLine() : File(MemoryBuffer::getFileAsStream("/proc/self/cmdline")) {
        SmallVector<StringRef, 256> Given;
        if (File)
            (*File)->getBuffer().split(Given, '\0');
        SmallVector<const char *, 256> Arguments;
        for (StringRef Each : Given)
            Arguments.push_back(Saver.save(Each).data());
        cl::ExpandResponseFiles(Saver, cl::TokenizeGNUCommandLine, Arguments);
        Words.append(Arguments.begin(), Arguments.end());
    }

    bool isKnown() const { return bool(File); }
    bool has(ArrayRef<StringRef> Some) const { return std::search(Words.begin(), Words.end(), Some.begin(), Some.end()) != Words.end(); }

    // Whether the device code of this file is linked alone.
    bool isLinkedAlone() const { return has({"-cc1"}) && has({"-fcuda-is-device"}) && !has({"-fgpu-rdc"}); }

private:
    ErrorOr<std::unique_ptr<MemoryBuffer>> File;
    BumpPtrAllocator Memory;
    StringSaver Saver{Memory};
    SmallVector<StringRef, 256> Words;
};

} // namespace
