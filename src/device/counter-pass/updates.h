// What the plugins of this directory have in common: the calls that add to profile counters.
#pragma once
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

// The call of `Name` for a known counter that the instruction is, or null.
inline llvm::CallInst *updateBy(llvm::StringRef Name, llvm::Instruction &I) {
    auto *Call = llvm::dyn_cast<llvm::CallInst>(&I);
    llvm::Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    bool Is = Callee && Callee->getName() == Name && Call->arg_size() == 3 &&
              llvm::isa<llvm::Constant>(Call->getArgOperand(0)) && llvm::isa<llvm::Constant>(Call->getArgOperand(1));
    return Is ? Call : nullptr;
}

// Such functions are left alone, because the calls of the plugins have no tokens.
inline bool hasConvergenceTokens(const llvm::Function &F) {
    return llvm::any_of(llvm::instructions(F), [](const llvm::Instruction &I) { return llvm::isa<llvm::ConvergenceControlInst>(I); });
}
