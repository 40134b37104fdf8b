// The marks that stand for LLVM's stores to flags in coverage.cpp, and the code that its parts insert.
#pragma once
#include "updates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <optional>

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// Stands for LLVM's store to a flag: (flag, whether the block is entered). No code calls it in the end.
constexpr StringLiteral Mark = "__devprof_mark_covered";

// A call of DecisionMark has (bitmap, the decision's first bit, the number of its bits, which of these, array of flags, list of implied
// flags). The list is a constant, or null: pairs of a flag's index and the bits of which one is set if and only if the flag is set.

bool isGpu(const Module &M) { return M.getTargetTriple().isAMDGCN() || M.getTargetTriple().isNVPTX(); }

// An array and the index of the flag.
using Flag = std::pair<GlobalVariable *, unsigned>;

// The flag at a constant address.
std::optional<Flag> flagAt(Value *Pointer, const DataLayout &Layout) {
    APInt Offset(64, 0);
    auto *Array = dyn_cast<GlobalVariable>(Pointer->stripAndAccumulateConstantOffsets(Layout, Offset, true));
    auto *Type = Array ? dyn_cast<ArrayType>(Array->getValueType()) : nullptr;
    if (!Type || !Array->getName().starts_with("__profc_") || !Type->getElementType()->isIntegerTy(8) ||
        Offset.uge(Type->getNumElements()))
        return {};
    return Flag{Array, unsigned(Offset.getZExtValue())};
}

// The variables with words of flags that are not in memory yet, see BitWriter.
constexpr StringLiteral MissingWords = "__devprof_missing";

bool isMissingWord(const Value *Pointer) {
    const Value *Of = getUnderlyingObject(Pointer);
    return isa<GlobalVariable>(Of) && Of->getName().starts_with(MissingWords);
}

CallInst *markIn(Instruction &I) { return callOf(Mark, I); }

// Calls a mark. LLVM may copy, move and remove it with its block.
CallInst *createMark(IRBuilder<> &Here, StringRef Name, ArrayRef<Value *> Arguments) {
    SmallVector<Type *> Types;
    for (Value *Each : Arguments)
        Types.push_back(Each->getType());
    Module &M = *Here.GetInsertBlock()->getModule();
    FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(Here.getVoidTy(), Types, false));
    auto *Declared = cast<Function>(Callee.getCallee());
    for (auto Kind : {Attribute::NoUnwind, Attribute::WillReturn, Attribute::NoCallback, Attribute::NoSync, Attribute::NoFree})
        Declared->addFnAttr(Kind);
    Declared->setMemoryEffects(MemoryEffects::inaccessibleMemOnly(ModRefInfo::Mod));
    CallInst *Call = Here.CreateCall(Callee, Arguments);
    // Two marks do not become one whose flag depends on where the lane comes from.
    Call->addFnAttr(Attribute::NoMerge);
    return Call;
}

void addCondition(CallInst &Mark, Value *Goes) {
    Value *Known = Mark.getArgOperand(1);
    Mark.setArgOperand(1, match(Known, m_One()) ? Goes : IRBuilder<>(&Mark).CreateLogicalAnd(Goes, Known));
}

// Whether exactly one of two conditions holds.
bool areOpposite(Value *A, Value *B) {
    auto *One = dyn_cast<CmpInst>(A), *Other = dyn_cast<CmpInst>(B);
    return match(A, m_Not(m_Specific(B))) || match(B, m_Not(m_Specific(A))) ||
           (One && Other && One->getOperand(0) == Other->getOperand(0) && One->getOperand(1) == Other->getOperand(1) &&
            One->getPredicate() == Other->getInversePredicate());
}

// How often a flag is not in memory yet, as weights of branches.
constexpr uint32_t Seldom = 1, Often = 2000;

// Returns where code is inserted that is executed if the word is not 0.
Instruction *ifNot0(Instruction *Before, Value *Word, uint32_t Taken, uint32_t NotTaken) {
    IRBuilder<> Here(Before);
    MDNode *Weights = MDBuilder(Here.getContext()).createBranchWeights(Taken, NotTaken);
    return SplitBlockAndInsertIfThen(Here.CreateICmpNE(Word, Here.getInt32(0)), Before->getIterator(), false, Weights);
}

// Not 0 if one of the words is not.
Value *anyOf(Instruction *Before, ArrayRef<Value *> Words) {
    IRBuilder<> Here(Before);
    Value *Any = Here.getInt32(0);
    for (Value *Each : Words)
        Any = Here.CreateOr(Any, Each);
    return Any;
}

// An atomic operation without a result, on the GPU's own memory.
void updateAtomically(IRBuilder<> &Here, AtomicRMWInst::BinOp Operation, Value *Pointer, Value *Bits) {
    LLVMContext &Context = Here.getContext();
    bool IsAmd = Here.GetInsertBlock()->getModule()->getTargetTriple().isAMDGCN();
    auto *Update = Here.CreateAtomicRMW(Operation, Pointer, Bits, Align(4), AtomicOrdering::Monotonic,
                                        Context.getOrInsertSyncScopeID(IsAmd ? "agent" : "device"));
    if (IsAmd) // one instruction
        for (const char *Kind : {"amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory"})
            Update->setMetadata(Kind, MDNode::get(Context, {}));
}

// Whether the linker may take the array of a function from another file, which may have been compiled without this plugin: its address
// has any alignment. LLVM makes every array replaceable, but of a function that only this file has, there is no other one.
bool isReplaceable(const GlobalVariable &Array) {
    const Module &M = *Array.getParent();
    // cuda.h knows whether files are linked.
    const GlobalVariable *Copies = M.getNamedGlobal("__devprof_counter_copies");
    bool IsLinked = !Copies || !Copies->isStrongDefinitionForLinker();
    StringRef Name = Array.getName();
    Name.consume_front("__profc_") || Name.consume_front("__profbm_");
    const Function *Of = M.getFunction(Name);
    return IsLinked && !(Of && Of->hasExternalLinkage() && !Of->isDeclaration());
}

} // namespace
