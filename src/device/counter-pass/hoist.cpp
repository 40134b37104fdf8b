// A pass plugin for clang (-fpass-plugin=) that moves updates of profile counters of device code out of loops.
//
// Instrumented device code calls __llvm_profile_instrument_gpu(counter, uniform counter, step) in each counted block, and the
// device runtime writes to memory on each call. This pass replaces such calls in a loop: each lane adds its steps up in
// registers, and on each exit from the loop one call of __devprof_instrument_sums adds the sums to the counters. It is part of
// devprof's device runtime only (profile.c and cuda.h in src/device/device-rt).
//
// The counts stay the same. The uniform counter of a block counts updates by full waves, so each lane has two sums per
// counter: one of all updates, and one of updates while all lanes of the wave were active. One is enough in a loop in which
// the same lanes are always active.
//
// README.md has the rules for which loops are left alone.
#include "updates.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace {

constexpr StringLiteral Sampling = "__llvm_profile_sampling_gpu";
constexpr StringLiteral AddSums = "__devprof_instrument_sums";
constexpr StringLiteral AddForBlock = "__devprof_instrument_block";

// Two sums of 64 bits per counter occupy four registers of a lane.
constexpr size_t MaxCountersPerLoop = 8;

// Functions that may end the wave or wait for others: sums in registers would be lost, or not be visible to whoever waits.
class Callees {
public:
    explicit Callees(Module &M) {
        bool Changed = true;
        while (Changed) {
            Changed = false;
            for (Function &F : M) {
                if (F.isDeclaration() || isRuntime(F) || Unsafe.contains(&F))
                    continue;
                if (any_of(instructions(F), [&](Instruction &I) { return isUnsafe(I); })) {
                    Unsafe.insert(&F);
                    Changed = true;
                }
            }
        }
    }

    bool isUnsafe(const Instruction &I) const {
        if (isa<UnreachableInst>(I) || isa<AtomicCmpXchgInst>(I))
            return true;
        if (auto *Load = dyn_cast<LoadInst>(&I))
            return Load->isVolatile() || Load->isAtomic();
        auto *Call = dyn_cast<CallBase>(&I);
        if (!Call)
            return false;
        if (!isa<CallInst>(Call) || Call->doesNotReturn())
            return true;
        if (Call->isInlineAsm())
            return true;
        const Function *Callee = Call->getCalledFunction();
        if (!Callee)
            return true;
        if (Callee->isIntrinsic())
            return !Callee->hasFnAttribute(Attribute::WillReturn) && !isBarrier(*Callee);
        if (isRuntime(*Callee))
            return false;
        if (Callee->isDeclaration())
            return !isMath(*Callee);
        return Callee->isInterposable() || Unsafe.contains(Callee);
    }

private:
    static bool isRuntime(const Function &F) {
        return is_contained({Update, DecisionMark, Sampling, AddSums, AddForBlock}, F.getName());
    }
    // Of a block: all of its waves arrive.
    static bool isBarrier(const Function &F) {
        return F.getName().starts_with("llvm.amdgcn.s.barrier") || F.getName().starts_with("llvm.nvvm.barrier");
    }
    // The math libraries of HIP and CUDA.
    static bool isMath(const Function &F) {
        return F.getName().starts_with("__ocml_") || F.getName().starts_with("__nv_");
    }

    SmallPtrSet<const Function *, 16> Unsafe;
};

// The sums of one counter.
struct Sums {
    Constant *Counter, *Uniform;
    AllocaInst *All;
    AllocaInst *Full; // null: the wave is full in all iterations or in none
};

class Hoisting {
public:
    Hoisting(Function &F, const Callees &Calls, UniformityInfo &Uniformity)
        : F(F), Calls(Calls), Uniformity(Uniformity), DT(F), LI(DT) {}

    bool run() {
        SmallVector<Loop *> Outermost(LI.begin(), LI.end());
        for (Loop *L : Outermost)
            visit(*L);
        if (!Promoted.empty())
            PromoteMemToReg(Promoted, DT);
        return !Promoted.empty();
    }

private:
    void visit(Loop &L) {
        if (hoist(L))
            return;
        SmallVector<Loop *> Inner(L.begin(), L.end());
        for (Loop *Sub : Inner)
            visit(*Sub);
    }

    bool hoist(Loop &L) {
        // The updates of the innermost loops are executed most often.
        MapVector<Constant *, SmallVector<CallInst *>> Updates;
        SmallVector<BasicBlock *> Exits;
        L.getExitBlocks(Exits);
        if (Exits.empty())
            return false;
        for (BasicBlock *Block : L.blocks())
            for (Instruction &I : *Block) {
                if (Calls.isUnsafe(I))
                    return false;
                if (CallInst *Call = updateBy(Update, I))
                    Updates[cast<Constant>(Call->getArgOperand(0))].push_back(Call);
            }
        if (Updates.empty())
            return false;
        if (!L.getLoopPreheader() && !InsertPreheaderForLoop(&L, &DT, &LI, nullptr, false))
            return false;
        if (!L.hasDedicatedExits())
            formDedicatedExitBlocks(&L, &DT, &LI, nullptr, false);
        if (!L.hasDedicatedExits())
            return false;

        auto Sorted = Updates.takeVector();
        auto Depth = [&](const auto &Entry) {
            unsigned Deepest = 0;
            for (CallInst *Call : Entry.second)
                Deepest = std::max(Deepest, LI.getLoopDepth(Call->getParent()));
            return Deepest;
        };
        stable_sort(Sorted, [&](const auto &A, const auto &B) { return Depth(A) > Depth(B); });
        if (Sorted.size() > MaxCountersPerLoop)
            Sorted.resize(MaxCountersPerLoop);

        // Only divergent branches change which lanes are active.
        Value *IsFull = nullptr;
        if (none_of(L.blocks(), [&](BasicBlock *Block) { return Uniformity.hasDivergentTerminator(*Block); })) {
            IRBuilder<> Before(L.getLoopPreheader()->getTerminator());
            IsFull = isFullWave(Before);
        }
        SmallVector<Sums> All;
        for (auto &[Counter, Places] : Sorted)
            All.push_back(accumulate(L, Counter, Places, !IsFull));
        SmallVector<BasicBlock *> Flushed;
        L.getUniqueExitBlocks(Flushed);
        for (BasicBlock *Exit : Flushed)
            for (Sums &S : All)
                flush(*Exit, S, IsFull);
        return true;
    }

    Sums accumulate(Loop &L, Constant *Counter, ArrayRef<CallInst *> Places, bool LanesChange) {
        Sums S{Counter, cast<Constant>(Places.front()->getArgOperand(1)), sum(L, "devprof.all"),
               LanesChange ? sum(L, "devprof.full") : nullptr};
        for (CallInst *Call : Places) {
            IRBuilder<> Here(Call);
            Value *Step = Call->getArgOperand(2);
            add(Here, S.All, Step);
            if (S.Full)
                add(Here, S.Full, Here.CreateSelect(isFullWave(Here), Step, Here.getInt64(0)));
            Call->eraseFromParent();
        }
        return S;
    }

    // A variable that is 0 when the loop begins.
    AllocaInst *sum(Loop &L, const char *Name) {
        IRBuilder<> Entry(&F.getEntryBlock(), F.getEntryBlock().begin());
        AllocaInst *Sum = Entry.CreateAlloca(Entry.getInt64Ty(), nullptr, Name);
        Promoted.push_back(Sum);
        IRBuilder<> Before(L.getLoopPreheader()->getTerminator());
        Before.CreateStore(Before.getInt64(0), Sum);
        return Sum;
    }

    static void add(IRBuilder<> &Here, AllocaInst *Sum, Value *Step) {
        Here.CreateStore(Here.CreateAdd(Here.CreateLoad(Here.getInt64Ty(), Sum), Step), Sum);
    }

    // Whether all lanes of the wave are active: what the device runtime compares.
    Value *isFullWave(IRBuilder<> &Here) {
        if (F.getParent()->getTargetTriple().isNVPTX()) {
            Value *Active = Here.CreateIntrinsic(Intrinsic::nvvm_activemask, ArrayRef<Type *>(), {});
            return Here.CreateICmpEQ(Active, Here.getInt32(~0u));
        }
        Value *Active = Here.CreateIntrinsic(Intrinsic::amdgcn_ballot, {Here.getInt64Ty()}, {Here.getTrue()});
        Value *Count = Here.CreateUnaryIntrinsic(Intrinsic::ctpop, Active);
        Value *Lanes = Here.CreateIntrinsic(Intrinsic::amdgcn_wavefrontsize, ArrayRef<Type *>(), {});
        return Here.CreateICmpEQ(Count, Here.CreateZExt(Lanes, Here.getInt64Ty()));
    }

    // `IsFull`: whether the wave was full in all iterations, if the sums do not contain it.
    void flush(BasicBlock &Exit, Sums &S, Value *IsFull) {
        IRBuilder<> Here(&Exit, Exit.getFirstInsertionPt());
        // Calls in functions with debug information need a location.
        if (DISubprogram *Subprogram = F.getSubprogram())
            Here.SetCurrentDebugLocation(DILocation::get(F.getContext(), 0, 0, Subprogram));
        Type *Int64 = Here.getInt64Ty();
        FunctionCallee Callee = F.getParent()->getOrInsertFunction(
            AddSums, Here.getVoidTy(), S.Counter->getType(), S.Uniform->getType(), Int64, Int64);
        Value *All = Here.CreateLoad(Int64, S.All);
        Value *Full = S.Full ? Here.CreateLoad(Int64, S.Full) : Here.CreateSelect(IsFull, All, Here.getInt64(0));
        CallInst *Call = Here.CreateCall(Callee, {S.Counter, S.Uniform, All, Full});
        Call->addFnAttr(Attribute::Convergent);
    }

    Function &F;
    const Callees &Calls;
    UniformityInfo &Uniformity;
    DominatorTree DT;
    LoopInfo LI;
    SmallVector<AllocaInst *> Promoted;
};

// All threads of a block make the updates at the beginning of a kernel. On NVIDIA GPUs, one thread makes them for the block.
void addForBlocks(Function &Kernel) {
    for (Instruction &I : Kernel.getEntryBlock()) {
        CallInst *Call = updateBy(Update, I);
        if (Call && isa<ConstantInt>(Call->getArgOperand(2)))
            Call->setCalledFunction(Kernel.getParent()->getOrInsertFunction(AddForBlock, Call->getFunctionType()));
        else if (!isGuaranteedToTransferExecutionToSuccessor(&I))
            return;
    }
}

class HoistPass : public PassInfoMixin<HoistPass> {
public:
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &Manager) {
        const Triple &Target = M.getTargetTriple();
        Function *Called = M.getFunction(Update);
        constexpr StringLiteral Done = "devprof.hoisted";
        if (!(Target.isAMDGCN() || Target.isNVPTX()) || !Called || M.getNamedMetadata(Done))
            return PreservedAnalyses::all();
        // Runs once. For instrumentation by the front end, that is before functions are inlined.
        if (!any_of(Called->users(), [](User *U) { return isa<CallInst>(U); }))
            return PreservedAnalyses::all();
        M.getOrInsertNamedMetadata(Done);
        Callees Calls(M);
        auto &Analyses = Manager.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
        for (Function &F : M) {
            if (F.isDeclaration() || hasConvergenceTokens(F))
                continue;
            if (F.getCallingConv() == CallingConv::PTX_Kernel)
                addForBlocks(F);
            Hoisting(F, Calls, Analyses.getResult<UniformityInfoAnalysis>(F)).run();
        }
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-hoist", "1", [](PassBuilder &Builder) {
                // After clang's instrumentation is lowered (at the start of the pipeline), before inlining.
                Builder.registerPipelineEarlySimplificationEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(HoistPass()); });
                // After LLVM's own instrumentation (-fprofile-generate), which comes later.
                Builder.registerOptimizerEarlyEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(HoistPass()); });
            }};
}
