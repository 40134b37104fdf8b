// Which functions may not keep flags in registers.
#pragma once
#include "marks.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// What functions do to flags in registers: of a wave that ends, those of all its lanes are lost, and while a wave waits for
// others, nobody sees them.
class Callees {
public:
    // Of these functions, and of those that they call.
    Callees(const Module &M, SmallSetVector<Function *, 16> All, FunctionAnalysisManager &Analyses)
        : Nvidia(M.getTargetTriple().isNVPTX()) {
        DenseMap<Function *, SmallVector<Function *>> Callers;
        SmallVector<Function *> ToEnd, ToWait;
        for (size_t N = 0; N < All.size(); N++) {
            Function &F = *All[N];
            for (Instruction &I : instructions(F)) {
                if (Function *Callee = definitionCalled(I)) {
                    Callers[Callee].push_back(&F);
                    All.insert(Callee);
                } else if (mayEnd(I)) {
                    ToEnd.push_back(&F);
                }
            }
            LoopInfo &Loops = Analyses.getResult<LoopAnalysis>(F);
            if (any_of(Loops.getLoopsInPreorder(), [](Loop *L) { return waits(*L); }))
                ToWait.push_back(&F);
        }
        for (auto [Found, Left] : {std::pair{&Ending, &ToEnd}, {&Waiting, &ToWait}})
            while (!Left->empty()) {
                Function *F = Left->pop_back_val();
                if (Found->insert(F).second)
                    append_range(*Left, Callers[F]);
            }
    }

    bool mayEnd(const Function &F) const { return Ending.contains(&F); }

    // Whether the wave, or on NVIDIA GPUs the thread, may not go on after the instruction.
    bool mayEnd(const Instruction &I) const {
        auto *Call = dyn_cast<CallBase>(&I);
        if (!Call)
            return false;
        if (const auto *Assembly = dyn_cast<InlineAsm>(Call->getCalledOperand())) {
            StringRef Text = Assembly->getAsmString();
            return any_of(ArrayRef<StringRef>{"exit", "endpgm", "trap", "sethalt", "setpc"},
                          [&](StringRef Word) { return Text.contains(Word); });
        }
        // A trap or a failed assertion on an NVIDIA GPU ends all its kernels, and its memory cannot be read any more. Threads end
        // one by one, in assembly code.
        if (Nvidia)
            return Call->getIntrinsicID() == Intrinsic::nvvm_exit || (definitionCalled(I) && Ending.contains(definitionCalled(I)));
        if (Call->doesNotReturn())
            return true;
        if (const Function *Callee = definitionCalled(I))
            return Ending.contains(Callee);
        const Function *Callee = Call->getCalledFunction();
        // The counts' functions are linked later.
        return !Callee || !(Callee->isIntrinsic() || Callee->hasFnAttribute(Attribute::WillReturn) || Callee->getName() == Update ||
                            Callee->getName().starts_with("__devprof_instrument_"));
    }

    bool mayWait(const Instruction &I) const {
        const Function *Callee = definitionCalled(I);
        return Callee && Waiting.contains(Callee);
    }

    // A loop that may wait for other waves or the host.
    static bool waits(const Loop &L) {
        return L.hasNoExitBlocks() || any_of(L.blocks(), [&](BasicBlock *Block) {
                   return all_of(L.getSubLoops(), [&](Loop *Sub) { return !Sub->contains(Block); }) && any_of(*Block, isPoll);
               });
    }

private:
    // Reads what others write while the wave runs.
    static bool isPoll(const Instruction &I) {
        if (auto *Load = dyn_cast<LoadInst>(&I))
            return Load->isVolatile() || (Load->isAtomic() && !isMissingWord(Load->getPointerOperand()));
        if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) // atomicAdd(address, 0)
            return Update->getOperation() == AtomicRMWInst::Xchg || match(Update->getValOperand(), m_Zero());
        if (auto *Call = dyn_cast<CallBase>(&I))
            if (auto *Assembly = dyn_cast<InlineAsm>(Call->getCalledOperand()))
                return Assembly->hasSideEffects() && StringRef(Assembly->getAsmString()).contains("ld.");
        return isa<AtomicCmpXchgInst>(I);
    }

    static Function *definitionCalled(const Instruction &I) {
        auto *Call = dyn_cast<CallBase>(&I);
        Function *Callee = Call ? Call->getCalledFunction() : nullptr;
        return Callee && !Callee->isDeclaration() && !Callee->isInterposable() ? Callee : nullptr;
    }

    bool Nvidia;
    SmallPtrSet<const Function *, 16> Ending, Waiting;
};

} // namespace
