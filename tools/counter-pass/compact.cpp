// A pass plugin for clang (-fpass-plugin=) for AMD GPUs that makes device code with profile counters smaller, so that it compiles
// in about the time of code without counters. README.md says what it does, and why the counts stay the same.
#include "updates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

// Functions of devprof's device runtime (tools/device-rt/profile.c).
constexpr StringLiteral Taken = "__devprof_instrument_taken";
constexpr StringLiteral Called = "__devprof_instrument_called";

// A block with more instructions, beside updates, stays a block of its own.
constexpr unsigned MaxOthers = 4;
// The updates that are inlined into a function. If it has more, all of them are calls.
constexpr size_t MaxInlined = 32;

// The update with a known step that the instruction is, or null.
CallInst *constantUpdate(Instruction &I) {
    CallInst *Call = updateBy(Update, I);
    return Call && isa<ConstantInt>(Call->getArgOperand(2)) ? Call : nullptr;
}

// The same, or an update that was moved.
CallInst *updateOf(Instruction &I) {
    CallInst *Call = constantUpdate(I);
    return Call ? Call : updateBy(Taken, I);
}

void callInstead(CallInst &Call, StringRef Name) {
    Call.setCalledFunction(Call.getModule()->getOrInsertFunction(Name, Call.getFunctionType()));
}

bool isForAmd(const Function &F) {
    const Module &M = *F.getParent();
    return !F.isDeclaration() && M.getTargetTriple().isAMDGCN() && (M.getFunction(Update) || M.getFunction(Taken));
}

// Moves all of `Block` in front of the branch of `Before`, its only predecessor. Lanes that do not take the branch add 0.
void moveUp(BasicBlock &Block, CondBrInst &Branch) {
    IRBuilder<> Here(&Branch);
    Value *Goes = Branch.getCondition();
    if (Branch.getSuccessor(0) != &Block)
        Goes = Here.CreateNot(Goes);
    for (Instruction &I : make_early_inc_range(Block)) {
        if (I.isTerminator())
            break;
        I.moveBefore(Branch.getIterator());
        if (CallInst *Call = updateOf(I)) {
            IRBuilder<> AtCall(Call);
            Call->setArgOperand(2, AtCall.CreateSelect(Goes, Call->getArgOperand(2), AtCall.getInt64(0)));
            callInstead(*Call, Taken);
        } else {
            I.dropUBImplyingAttrsAndMetadata();
        }
    }
}

// Whether the block can be moved in front of the branch: it has updates, and what else it does may be done without need.
bool isMovable(BasicBlock &Block, CondBrInst &Branch) {
    unsigned Updates = 0, Others = 0;
    for (Instruction &I : Block) {
        if (I.isTerminator() || I.isDebugOrPseudoInst())
            continue;
        if (updateOf(I))
            ++Updates;
        else if (isa<PHINode>(I) || ++Others > MaxOthers || !isSafeToSpeculativelyExecute(&I, &Branch))
            return false;
    }
    return Updates != 0;
}

// For updates in the blocks of a branch, which otherwise keep LLVM from making a select of it.
struct MoveUpdates : PassInfoMixin<MoveUpdates> {
    PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
        if (!isForAmd(F))
            return PreservedAnalyses::all();
        bool Changed = false;
        for (BasicBlock &Block : F) {
            BasicBlock *Before = Block.getSinglePredecessor();
            auto *Branch = Before ? dyn_cast<CondBrInst>(Before->getTerminator()) : nullptr;
            if (!Branch || Before == &Block || Branch->getSuccessor(0) == Branch->getSuccessor(1) ||
                !isa<UncondBrInst>(Block.getTerminator()) || !isMovable(Block, *Branch))
                continue;
            moveUp(Block, *Branch);
            Changed = true;
        }
        return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }
};

// Several updates of a counter in one block are one, which adds the sum of their steps.
bool mergeUpdates(BasicBlock &Block) {
    SmallDenseMap<Value *, CallInst *> First;
    bool Changed = false;
    for (Instruction &I : make_early_inc_range(Block)) {
        CallInst *Call = constantUpdate(I);
        if (!Call)
            continue;
        auto [It, IsFirst] = First.insert({Call->getArgOperand(0), Call});
        if (IsFirst)
            continue;
        CallInst &To = *It->second;
        const APInt &One = cast<ConstantInt>(To.getArgOperand(2))->getValue();
        const APInt &Other = cast<ConstantInt>(Call->getArgOperand(2))->getValue();
        To.setArgOperand(2, ConstantInt::get(To.getContext(), One + Other));
        Call->eraseFromParent();
        Changed = true;
    }
    return Changed;
}

struct CombineUpdates : PassInfoMixin<CombineUpdates> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        bool Changed = false;
        for (Function &F : M) {
            if (!isForAmd(F))
                continue;
            for (BasicBlock &Block : F)
                Changed |= mergeUpdates(Block);
            SmallVector<CallInst *> Updates;
            for (Instruction &I : instructions(F))
                if (CallInst *Call = updateOf(I))
                    Updates.push_back(Call);
            if (Updates.size() <= MaxInlined)
                continue;
            for (CallInst *Call : Updates)
                callInstead(*Call, Called);
            Changed = true;
        }
        return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }
};

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-compact", "1", [](PassBuilder &Builder) {
                // Often, so that each function has its final shape before it is inlined into others.
                Builder.registerPeepholeEPCallback(
                    [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(MoveUpdates()); });
                // After functions are inlined and loops unrolled.
                Builder.registerOptimizerLastEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(CombineUpdates()); });
            }};
}
