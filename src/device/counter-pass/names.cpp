// A pass plugin for clang (-fpass-plugin=) for instrumented device code of NVIDIA GPUs: gives the profile variables of internal
// functions (`static`, in anonymous namespaces) names that PTX allows.
//
// clang puts the name of the source file into them, `__profc_sort.cu__ZL4swapPi`, and ptxas accepts no dot in a name. They are
// visible, so with relocatable device code two files of one name would define them twice, too. The function's name in the profile,
// `sort.cu;_ZL4swapPi`, is in the variable's content and stays as it is.
#include "updates.h"
#include "llvm/IR/Module.h"
#include "llvm/ProfileData/InstrProf.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MD5.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace {

bool isInIdentifiers(char C) { return isAlnum(C) || C == '_' || C == '$'; }

// What no other module that is linked with this one has: from the path of its source, and from the symbols that it defines, because
// one source can be compiled twice, with different macros.
std::string idOf(Module &M) {
    SmallString<256> Path(M.getSourceFileName());
    sys::fs::make_absolute(Path);
    MD5 Hash;
    Hash.update(Path);
    Hash.update(getUniqueModuleId(&M));
    return utohexstr(Hash.final().low(), /*LowerCase=*/true);
}

// Before LLVM lowers the instrumentation: it names a function's counters, record and bitmap after the variable with its name.
struct RenameInternal : PassInfoMixin<RenameInternal> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        SmallVector<GlobalVariable *> Internal;
        if (M.getTargetTriple().isNVPTX())
            for (GlobalVariable &Variable : M.globals())
                if (Variable.getName().starts_with(getInstrProfNameVarPrefix()) && Variable.hasInitializer() &&
                    !all_of(getPGOFuncNameVarInitializer(&Variable), isInIdentifiers))
                    Internal.push_back(&Variable);
        if (Internal.empty())
            return PreservedAnalyses::all();
        std::string Id = idOf(M);
        for (GlobalVariable *Variable : Internal) {
            std::string Name = Variable->getName().str();
            std::replace_if(
                Name.begin(), Name.end(), [](char C) { return !isInIdentifiers(C); }, '_');
            Variable->setName(Name + "_" + Id);
        }
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-names", "1", [](PassBuilder &Builder) {
                Builder.registerPipelineStartEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel) { Passes.addPass(RenameInternal()); });
            }};
}
