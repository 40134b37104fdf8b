// What the plugins of this directory have in common: the calls that add to profile counters.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

// What clang calls in each counted block: (counter, uniform counter, step).
constexpr llvm::StringLiteral Update = "__llvm_profile_instrument_gpu";

// Stands for clang's update of a bitmap of MC/DC, in coverage.cpp.
constexpr llvm::StringLiteral DecisionMark = "__devprof_mark_decided";

// The call of `Name` that the instruction is, or null. (To look up a name takes time, and most calls are of intrinsics.)
inline llvm::CallInst *callOf(llvm::StringRef Name, llvm::Instruction &I) {
    auto *Call = llvm::dyn_cast<llvm::CallInst>(&I);
    llvm::Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    return Callee && !Callee->isIntrinsic() && Callee->getName() == Name ? Call : nullptr;
}

// The call of `Name` for a known counter that the instruction is, or null.
inline llvm::CallInst *updateBy(llvm::StringRef Name, llvm::Instruction &I) {
    llvm::CallInst *Call = callOf(Name, I);
    bool Is = Call && Call->arg_size() == 3 && llvm::isa<llvm::Constant>(Call->getArgOperand(0)) && llvm::isa<llvm::Constant>(Call->getArgOperand(1));
    return Is ? Call : nullptr;
}

// What remains known after instructions were changed, but no block and no branch.
inline llvm::PreservedAnalyses analysesOfBlocks() {
    llvm::PreservedAnalyses Kept;
    Kept.preserveSet<llvm::CFGAnalyses>();
    return Kept;
}

// Such functions are left alone, because the calls of the plugins have no tokens.
inline bool hasConvergenceTokens(const llvm::Function &F) {
    return llvm::any_of(llvm::instructions(F), [](const llvm::Instruction &I) { return llvm::isa<llvm::ConvergenceControlInst>(I); });
}

// Removes what LLVM puts in front of a function's name for its record, its counters and its counts of full waves.
inline bool consumeCounterPrefix(llvm::StringRef &Name) {
    return Name.consume_front("__profd_") || Name.consume_front("__profc_") || Name.consume_front("__llvm_prf_unifcnt_");
}

// Nobody looks for counters and records by their names in a code object, except for those of kernels, which clang's host code
// registers with HIP. Hidden variables are in no symbol table.
inline bool hideCounters(llvm::Module &M) {
    if (!M.getTargetTriple().isAMDGCN())
        return false;
    bool Changed = false;
    for (llvm::GlobalVariable &Variable : M.globals()) {
        llvm::StringRef Name = Variable.getName();
        if (!consumeCounterPrefix(Name))
            continue;
        llvm::Function *Counted = M.getFunction(Name);
        if ((Counted && Counted->getCallingConv() == llvm::CallingConv::AMDGPU_KERNEL) || !Variable.hasProtectedVisibility())
            continue;
        Variable.setVisibility(llvm::GlobalValue::HiddenVisibility);
        Changed = true;
    }
    return Changed;
}

// A block with more instructions, beside updates, stays a block of its own.
constexpr unsigned MaxOthers = 4;

using IsUpdate = llvm::function_ref<bool(llvm::Instruction &)>;

// Whether the block can be moved in front of the branch: it has updates, and what else it does may be done without need.
inline bool isMovable(llvm::BasicBlock &Block, llvm::CondBrInst &Branch, IsUpdate Is) {
    unsigned Updates = 0, Others = 0;
    for (llvm::Instruction &I : Block) {
        if (I.isTerminator() || I.isDebugOrPseudoInst())
            continue;
        if (Is(I))
            ++Updates;
        else if (llvm::isa<llvm::PHINode>(I) || ++Others > MaxOthers || !llvm::isSafeToSpeculativelyExecute(&I, &Branch))
            return false;
    }
    return Updates != 0;
}

// Moves blocks that a branch may skip, and that have updates and little else, in front of the branch, from where LLVM can make a
// select of it. `SetCondition` makes a moved update depend on a condition.
inline bool moveBeforeBranches(llvm::Function &F, llvm::FunctionAnalysisManager &Analyses, IsUpdate Is,
                               llvm::function_ref<void(llvm::Instruction &, llvm::Value *)> SetCondition) {
    bool Changed = false;
    for (llvm::BasicBlock &Block : F) {
        llvm::BasicBlock *Before = Block.getSinglePredecessor();
        auto *Branch = Before ? llvm::dyn_cast<llvm::CondBrInst>(Before->getTerminator()) : nullptr;
        if (!Branch || Before == &Block || Branch->getSuccessor(0) == Branch->getSuccessor(1) ||
            !llvm::isa<llvm::UncondBrInst>(Block.getTerminator()) || !isMovable(Block, *Branch, Is))
            continue;
        // Lanes leave a loop one after another, and count together behind it. (Moving instructions changes no loop.)
        llvm::LoopInfo &Loops = Analyses.getResult<llvm::LoopAnalysis>(F);
        if (Loops.getLoopFor(Before) != Loops.getLoopFor(&Block))
            continue;
        llvm::IRBuilder<> Here(Branch);
        llvm::Value *Goes = Branch->getCondition();
        if (Branch->getSuccessor(0) != &Block)
            Goes = Here.CreateNot(Goes);
        for (llvm::Instruction &I : llvm::make_early_inc_range(Block)) {
            if (I.isTerminator())
                break;
            I.moveBefore(Branch->getIterator());
            if (Is(I))
                SetCondition(I, Goes);
            else
                I.dropUBImplyingAttrsAndMetadata();
        }
        Changed = true;
    }
    return Changed;
}
