// A pass plugin for clang (-fpass-plugin=) for device code with byte coverage (-enable-single-byte-coverage): a function keeps its
// flags in registers, and writes those that are not in memory yet where it ends. README.md has the rules.
//
// A flag is a byte that LLVM's code sets to 0 in each block of the source code; before, it is 0xff. This plugin
//
// 1. replaces the stores by calls (marks) before the code is optimized,
// 2. moves marks in front of branches, so that they do not keep LLVM from making selects,
// 3. replaces the marks by code when functions are inlined.
//
// In the bitmaps of MC/DC, LLVM's code sets a bit for each decision. These bits are kept in registers in the same way.
#include "command.h"
#include "flags.h"
#include "variables.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Local.h"
#include <dlfcn.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

// ---- Marks.

// With -conditional-counter-update, LLVM tests the flag, and the store is in a block of its own. Returns the load of the test.
LoadInst *testOf(StoreInst &Store) {
    BasicBlock *Block = Store.getParent(), *Before = Block->getSinglePredecessor();
    auto *Branch = Before ? dyn_cast<CondBrInst>(Before->getTerminator()) : nullptr;
    Value *Tested;
    if (!Branch || &Block->front() != &Store || !isa<UncondBrInst>(Store.getNextNode()) ||
        !match(Branch->getCondition(), m_SpecificICmp(Branch->getSuccessor(0) == Block ? ICmpInst::ICMP_NE : ICmpInst::ICMP_EQ,
                                                      m_Value(Tested), m_Zero())))
        return nullptr;
    auto *Load = dyn_cast<LoadInst>(Tested);
    return Load && Load->getParent() == Before && Load->getPointerOperand() == Store.getPointerOperand() ? Load : nullptr;
}

struct MarkFlags : PassInfoMixin<MarkFlags> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        shareVersion(M);
        hideCounters(M);
        return mark(M) ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }

    // clang defines the raw version in each file, external and in a COMDAT, which nvlink does not know: it would refuse a second
    // file.
    static void shareVersion(Module &M) {
        GlobalVariable *Version = M.getGlobalVariable("__llvm_profile_raw_version");
        if (!Version || !M.getTargetTriple().isNVPTX())
            return;
        Version->setComdat(nullptr);
        Version->setLinkage(GlobalValue::WeakAnyLinkage);
    }

    static bool mark(Module &M) {
        bool Changed = false;
        for (Function &F : M)
            if (isGpu(M)) {
                Changed |= mark(F);
                Changed |= markBitmap(F);
            }
        return Changed;
    }

private:
    // The marks of decisions get the function's bitmap, and LLVM's updates are removed. Each is behind a test, which LLVM then removes.
    static bool markBitmap(Function &F) {
        SmallVector<CallInst *> Marks;
        SmallVector<Instruction *> Updates;
        Constant *Bitmap = nullptr, *Flags = nullptr;
        for (Instruction &I : instructions(F)) {
            CallInst *Call = callOf(DecisionMark, I);
            if (Call && isa<ConstantPointerNull>(Call->getArgOperand(0)))
                Marks.push_back(Call);
            // The one of the first block is always there.
            if (CallInst *Known = Flags ? nullptr : markIn(I))
                if (std::optional<Flag> Of = flagAt(Known->getArgOperand(0), F.getDataLayout()))
                    Flags = Of->first;
            auto *Atomic = dyn_cast<AtomicRMWInst>(&I);
            auto *Store = dyn_cast<StoreInst>(&I);
            Value *Pointer = Atomic ? Atomic->getPointerOperand() : Store ? Store->getPointerOperand() : nullptr;
            auto *Array = Pointer ? dyn_cast<GlobalVariable>(getUnderlyingObject(Pointer)) : nullptr;
            if (Array && Array->getName().starts_with("__profbm_")) {
                Updates.push_back(&I);
                Bitmap = Array;
            }
        }
        if (Marks.empty())
            return false;
        for (CallInst *Each : Marks) {
            if (!Bitmap) {
                Each->eraseFromParent();
                continue;
            }
            for (auto [N, Array] : {std::pair{0u, Bitmap}, {4u, Flags}})
                if (Array)
                    Each->setArgOperand(N, ConstantExpr::getPointerBitCastOrAddrSpaceCast(Array, Each->getArgOperand(N)->getType()));
        }
        for (Instruction *Each : Updates)
            Each->eraseFromParent();
        return true;
    }

    static bool mark(Function &F) {
        SmallVector<StoreInst *> Stores;
        for (Instruction &I : instructions(F)) {
            auto *Store = dyn_cast<StoreInst>(&I);
            if (Store && Store->isSimple() && match(Store->getValueOperand(), m_ZeroInt()) &&
                Store->getValueOperand()->getType()->isIntegerTy(8) && flagAt(Store->getPointerOperand(), F.getDataLayout()))
                Stores.push_back(Store);
        }
        bool RemovesBlocks = false;
        for (StoreInst *Store : Stores) {
            LoadInst *Test = testOf(*Store);
            insert(Test ? cast<Instruction>(Test) : Store, Store->getPointerOperand());
            if (Test) {
                auto *Branch = cast<CondBrInst>(Test->getParent()->getTerminator());
                Branch->setCondition(ConstantInt::getBool(F.getContext(), Branch->getSuccessor(0) != Store->getParent()));
                RemovesBlocks |= ConstantFoldTerminator(Test->getParent(), true);
            } else {
                Store->eraseFromParent();
            }
        }
        if (RemovesBlocks)
            removeUnreachableBlocks(F);
        return !Stores.empty();
    }

    static void insert(Instruction *Before, Value *Pointer) {
        IRBuilder<> Here(Before);
        createMark(Here, Mark,
                   {ConstantExpr::getPointerBitCastOrAddrSpaceCast(cast<Constant>(Pointer), Here.getPtrTy()), Here.getTrue()});
    }
};

struct MoveMarks : PassInfoMixin<MoveMarks> {
    PreservedAnalyses run(Function &F, FunctionAnalysisManager &Analyses) {
        if (F.isDeclaration() || !F.getParent()->getFunction(Mark))
            return PreservedAnalyses::all();
        auto IsMark = [](Instruction &I) { return markIn(I) != nullptr; };
        bool Changed = removeRepeated(F, Analyses.getResult<DominatorTreeAnalysis>(F));
        Changed |= moveBeforeBranches(F, Analyses, IsMark, [](Instruction &I, Value *Goes) { addCondition(*markIn(I), Goes); });
        Changed |= moveToExits(F, Analyses.getResult<LoopAnalysis>(F));
        return Changed ? analysesOfBlocks() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }

private:
    // A flag that a dominating block sets, too, needs no second mark: iterations of unrolled loops and calls of the same function.
    static bool removeRepeated(Function &F, DominatorTree &Dominators) {
        DenseMap<std::pair<Value *, Value *>, SmallVector<BasicBlock *, 2>> Marked; // by flag and condition
        Value *Always = ConstantInt::getTrue(F.getContext());
        bool Changed = false;
        for (BasicBlock *Block : ReversePostOrderTraversal<Function *>(&F))
            for (Instruction &I : make_early_inc_range(*Block)) {
                CallInst *Call = markIn(I);
                if (!Call)
                    continue;
                Value *Flag = Call->getArgOperand(0), *If = Call->getArgOperand(1);
                auto Dominates = [&](BasicBlock *Other) { return Dominators.dominates(Other, Block); };
                auto &Same = Marked[{Flag, If}];
                if (any_of(Same, Dominates) || any_of(Marked.lookup({Flag, Always}), Dominates)) {
                    Call->eraseFromParent();
                    Changed = true;
                } else
                    Same.push_back(Block);
            }
        return Changed;
    }

    // A branch that a mark was moved in front of may leave a loop after other blocks were removed. LLVM changes the conditions of such
    // branches, not of marks.
    static bool moveToExits(Function &F, LoopInfo &Loops) {
        bool Changed = false;
        for (BasicBlock &Block : F) {
            auto *Branch = dyn_cast<CondBrInst>(Block.getTerminator());
            Loop *Inside = Loops.getLoopFor(&Block);
            if (!Branch || !Inside || Branch->getSuccessor(0) == Branch->getSuccessor(1))
                continue;
            for (Instruction &I : make_early_inc_range(Block)) {
                CallInst *Call = markIn(I);
                if (!Call)
                    continue;
                Value *Goes = Call->getArgOperand(1);
                bool IsTrue = Goes == Branch->getCondition();
                BasicBlock *Behind = Branch->getSuccessor(IsTrue ? 0 : 1);
                if ((!IsTrue && !areOpposite(Goes, Branch->getCondition())) || Inside->contains(Behind) ||
                    !Behind->getSinglePredecessor())
                    continue;
                Call->moveBefore(*Behind, Behind->getFirstInsertionPt());
                Call->setArgOperand(1, ConstantInt::getTrue(F.getContext()));
                Changed = true;
            }
        }
        return Changed;
    }
};

// ---- What is left of marks with an address that is not constant any more: LLVM's store.
void storeAt(CallInst &Call) {
    IRBuilder<> Here(&Call);
    Instruction *Then = SplitBlockAndInsertIfThen(Call.getArgOperand(1), Call.getIterator(), false);
    IRBuilder<>(Then).CreateStore(Here.getInt8(0), Call.getArgOperand(0));
    Call.eraseFromParent();
}

// Nested branches that only marks kept, as of `a && b`, become selects again: blocks with marks and little else are moved in front of
// the branch that skips them, the last ones first. A branch that is not nested stays, because its ways cost less than conditions.
class Flatten {
public:
    explicit Flatten(Function &F) : F(F), Dominators(F), Loops(Dominators) {}

    bool run() {
        bool Changed = false;
        SmallVector<BasicBlock *> Order;
        for (BasicBlock *Block : post_order(&F.getEntryBlock()))
            Order.push_back(Block);
        for (BasicBlock *Block : Order)
            if (hasMarks(*Block))
                Changed |= copyToPredecessors(*Block) || moveBeforeBranch(*Block);
        return Changed;
    }

private:
    static constexpr unsigned MaxOthers = 8;
    Function &F;
    DominatorTree Dominators;
    LoopInfo Loops;

    static bool isMark(Instruction &I) { return markIn(I) != nullptr; }
    static bool hasMarks(BasicBlock &Block) { return any_of(Block, isMark); }

    // Whether the block has only marks and a few instructions that may be executed without need. The conditions of marks do not count.
    static bool isSmall(BasicBlock &Block, Instruction *Before) {
        unsigned Others = 0;
        return all_of(Block, [&](Instruction &I) {
            if (I.isTerminator() || I.isDebugOrPseudoInst() || isMark(I))
                return true;
            bool IsCondition = I.getType()->isIntegerTy(1) && !isa<CmpInst>(I);
            Others += IsCondition ? 0 : 1;
            return !isa<PHINode>(I) && Others <= MaxOthers && isSafeToSpeculativelyExecute(&I, Before);
        });
    }

    // The marks of a block in which the ways of a branch meet, so that they do not keep the block.
    bool copyToPredecessors(BasicBlock &Block) {
        constexpr unsigned Most = 4;
        if (!Block.hasNPredecessorsOrMore(2) || Block.hasNPredecessorsOrMore(Most + 1))
            return false;
        SmallVector<Instruction *> Marks;
        for (Instruction &I : Block)
            if (CallInst *Call = markIn(I); Call && match(Call->getArgOperand(1), m_One()))
                Marks.push_back(Call);
            else if (!isa<PHINode>(I) && !I.isTerminator() && !I.isDebugOrPseudoInst())
                return false;
        SmallSetVector<BasicBlock *, 4> Before(pred_begin(&Block), pred_end(&Block));
        for (BasicBlock *Each : Before) {
            bool IsStart = Dominators.dominates(Each, &Block) && isa<CondBrInst>(Each->getTerminator());
            bool Stays = !isa<UncondBrInst, CondBrInst>(Each->getTerminator()) || !Each->getSinglePredecessor() ||
                         !isSmall(*Each, Each->getTerminator());
            if ((Stays && !IsStart) || Loops.getLoopFor(Each) != Loops.getLoopFor(&Block))
                return false;
        }
        for (BasicBlock *Each : Before) {
            bool Splits = isa<CondBrInst>(Each->getTerminator());
            BasicBlock *To = Splits ? SplitEdge(Each, &Block, &Dominators, &Loops) : Each;
            for (Instruction *Mark : Marks)
                Mark->clone()->insertBefore(To->getTerminator()->getIterator());
            if (Splits)
                moveBeforeBranch(*To);
        }
        for (Instruction *Mark : Marks)
            Mark->eraseFromParent();
        return true;
    }

    bool moveBeforeBranch(BasicBlock &Block) {
        BasicBlock *Before = Block.getSinglePredecessor();
        auto *Branch = Before ? dyn_cast<CondBrInst>(Before->getTerminator()) : nullptr;
        if (!Branch || Before == &Block || Branch->getSuccessor(0) == Branch->getSuccessor(1) ||
            Loops.getLoopFor(Before) != Loops.getLoopFor(&Block) || !isSmall(Block, Branch) || !isLast(Block))
            return false;
        auto IsNested = [&](BasicBlock *Each) {
            return Each->getSinglePredecessor() && isa<CondBrInst>(Each->getTerminator()) && isSmall(*Each, Branch);
        };
        if (!IsNested(Before) && none_of(successors(Before), IsNested))
            return false;
        IRBuilder<> Here(Branch);
        Value *Goes = Branch->getCondition();
        if (Branch->getSuccessor(0) != &Block)
            Goes = Here.CreateNot(Goes);
        for (Instruction &I : make_early_inc_range(Block)) {
            if (I.isTerminator())
                break;
            I.moveBefore(Branch->getIterator());
            if (CallInst *Call = markIn(I))
                addCondition(*Call, Goes);
            else
                I.dropUBImplyingAttrsAndMetadata();
        }
        return true;
    }

    // Whether nothing is left of the blocks behind, up to those where ways meet.
    static bool isLast(BasicBlock &Block) {
        auto IsEmpty = [](BasicBlock *Next) {
            return Next->hasNPredecessorsOrMore(2) || (isa<UncondBrInst>(Next->getTerminator()) && &Next->front() == Next->getTerminator());
        };
        return isa<UncondBrInst>(Block.getTerminator()) ||
               (isa<CondBrInst>(Block.getTerminator()) && all_of(successors(&Block), IsEmpty));
    }
};

// Large functions of which LLVM's passes between the two runs of KeepFlags are left to the link. They would, for example, try to
// vectorize the condition of each mark.
SmallPtrSet<const Function *, 16> LeftToLink;

bool mayRun(StringRef, Any On) {
    if (LeftToLink.empty())
        return true;
    if (auto *L = any_cast<const Loop *>(&On))
        return !LeftToLink.contains((*L)->getHeader()->getParent());
    auto *F = any_cast<const Function *>(&On);
    return !F || !LeftToLink.contains(*F);
}

struct KeepFlags : PassInfoMixin<KeepFlags> {
    bool IsLast, IsOptimizedAgain; // when files are linked
    KeepFlags(bool IsLast, ThinOrFullLTOPhase Phase) : IsLast(IsLast), IsOptimizedAgain(Phase == ThinOrFullLTOPhase::FullLTOPreLink) {}

    PreservedAnalyses run(Module &M, ModuleAnalysisManager &Analyses) {
        FunctionAnalysisManager &InFunctions = Analyses.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
        // IR-level instrumentation is lowered late. What this pass itself has stored is not marked again.
        if (!IsLast && MarkFlags::mark(M))
            InFunctions.clear();
        LeftToLink.clear();
        Function *Declared = M.getFunction(Mark), *DeclaredDecision = M.getFunction(DecisionMark);
        if (!Declared && !DeclaredDecision)
            return PreservedAnalyses::all();
        DenseMap<const Function *, unsigned> Marks; // their number
        if (DeclaredDecision)
            for (User *Each : DeclaredDecision->users())
                Marks.try_emplace(cast<CallInst>(Each)->getFunction());
        if (Declared)
            for (User *Each : Declared->users())
                ++Marks[cast<CallInst>(Each)->getFunction()];
        SmallSetVector<Function *, 16> Now;
        for (Function &F : M)
            if (auto Found = Marks.find(&F); Found != Marks.end()) {
                if (IsLast || Found->second <= MaxEarly)
                    Now.insert(&F);
                else if (IsOptimizedAgain)
                    LeftToLink.insert(&F);
            }
        Callees Calls(M, Now, InFunctions);
        if (!IsLast)
            addEffects(M);
        for (Function *F : Now) {
            if (IsLast && M.getTargetTriple().isAMDGCN() && Marks[F] != 0)
                simplifyBranches(*F, Flatten(*F).run(), InFunctions);
            FlagsOf Flags(*F, Calls, IsOptimizedAgain);
            if (Flags.empty())
                continue;
            Flags.run();
            if (IsLast)
                simplify(*F, InFunctions);
        }
        if (IsLast && Declared) {
            for (User *Each : make_early_inc_range(Declared->users()))
                storeAt(*cast<CallInst>(Each));
            Declared->eraseFromParent();
            if (M.getTargetTriple().isAMDGCN() && CommandLine().isLinkedAlone())
                joinVariables(M);
        }
        if (IsLast && DeclaredDecision) {
            DeclaredDecision->eraseFromParent();
            for (GlobalVariable &Each : make_early_inc_range(M.globals()))
                if (Each.getName().starts_with("__devprof_implied") && (Each.removeDeadConstantUsers(), Each.use_empty()))
                    Each.eraseFromParent();
        }
        for (Function &F : M)
            InFunctions.invalidate(F, Now.contains(&F) ? PreservedAnalyses::none() : analysesOfBlocks());
        PreservedAnalyses Kept;
        Kept.preserve<FunctionAnalysisManagerModuleProxy>();
        Kept.preserveSet<AllAnalysesOn<Function>>();
        return Kept;
    }
    static bool isRequired() { return true; }

private:
    // Equal conditions of marks become one.
    static void simplifyBranches(Function &F, bool IsChanged, FunctionAnalysisManager &Analyses) {
        Analyses.invalidate(F, PreservedAnalyses::none());
        if (IsChanged)
            Analyses.invalidate(F, SimplifyCFGPass().run(F, Analyses));
        Analyses.invalidate(F, EarlyCSEPass().run(F, Analyses));
    }

    // Branches that only marks kept become selects. LLVM does it in functions whose flags are kept early.
    void simplify(Function &F, FunctionAnalysisManager &Analyses) const {
        Analyses.invalidate(F, PreservedAnalyses::none());
        Analyses.invalidate(F, EarlyCSEPass().run(F, Analyses));
        Analyses.invalidate(F, SimplifyCFGPass().run(F, Analyses));
        for (BasicBlock &Block : F)
            for (Instruction &I : make_early_inc_range(reverse(Block))) {
                // What keepIn inserted in blocks that are now one with the block before.
                auto *Use = dyn_cast<IntrinsicInst>(&I);
                auto *Kept = Use && Use->getIntrinsicID() == Intrinsic::fake_use ? dyn_cast<Instruction>(Use->getArgOperand(0)) : nullptr;
                if ((Kept && Kept->getParent() == &Block) || isInstructionTriviallyDead(&I))
                    I.eraseFromParent();
            }
        if (!IsOptimizedAgain)
            Analyses.invalidate(F, InstCombinePass().run(F, Analyses));
    }

    // LLVM has inferred what functions with marks access.
    static void addEffects(Module &M) {
        for (Function &F : M) {
            if (F.isDeclaration())
                continue;
            addEffects(F);
            for (Instruction &I : instructions(F))
                if (auto *Call = dyn_cast<CallBase>(&I); Call && Call->getAttributes().hasFnAttr(Attribute::Memory))
                    addEffects(*Call);
        }
    }

    // Flags are in other memory than what marks access.
    template <class FunctionOrCall> static void addEffects(FunctionOrCall &Of) {
        MemoryEffects Effects = Of.getMemoryEffects();
        if (isModSet(Effects.getModRef(IRMemLocation::InaccessibleMem)))
            Of.setMemoryEffects(Effects | MemoryEffects(IRMemLocation::Other, ModRefInfo::ModRef));
    }
};

// If clang loads the plugin before its front end, too (-fplugin), that turns LLVM's byte coverage on, but not for host code, which
// clang compiles in a process of its own. Otherwise, it is for the decisions of code with counts. No option of clang's driver reaches
// only the compiler of device code: LLVM's options (-Xarch_device -mllvm) also reach lld, which does not know this one.
struct TurnOn {
    TurnOn() {
        auto &Options = cl::getRegisteredOptions();
        auto Found = Options.find("enable-single-byte-coverage");
        if (Found != Options.end() && isWanted())
            static_cast<cl::opt<bool> *>(Found->second)->setValue(true);
    }

private:
    bool isWanted() {
        CommandLine Command;
        Dl_info Own;
        if (!Command.isKnown() || !dladdr(this, &Own))
            return true;
        // The driver has another name for the option, and may compile in its own process.
        std::string Option = (Twine("-fplugin=") + Own.dli_fname).str();
        if (!Command.has({"-load", Own.dli_fname}) && !Command.has({Option}))
            return false;
        bool IsHost = Command.has({"-cc1"}) && !Command.has({"-fcuda-is-device"}) && !Command.has({"-fopenmp-is-target-device"});
        return !IsHost;
    }
} const IsOn;

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-coverage", "1", [](PassBuilder &Builder) {
                // clang lowers its instrumentation at the start of the pipeline, behind the callbacks of plugins.
                Builder.registerPipelineStartEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel) { Passes.addPass(MarkDecisions()); });
                // After that, before inlining.
                Builder.registerPipelineEarlySimplificationEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(MarkFlags()); });
                if (PassInstrumentationCallbacks *Callbacks = Builder.getPassInstrumentationCallbacks())
                    Callbacks->registerShouldRunOptionalPassCallback(mayRun);
                Builder.registerPeepholeEPCallback(
                    [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(MoveMarks()); });
                // After functions are inlined. Loops are unrolled between the two.
                Builder.registerOptimizerEarlyEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase Phase) { Passes.addPass(KeepFlags(false, Phase)); });
                Builder.registerOptimizerLastEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase Phase) { Passes.addPass(KeepFlags(true, Phase)); });
            }};
}
