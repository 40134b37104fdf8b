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
#include "updates.h"
#include "variables.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include <deque>
#include <dlfcn.h>
#include <map>
#include <vector>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

// Stands for LLVM's store to a flag: (flag, whether the block is entered). No code calls it in the end.
constexpr StringLiteral Mark = "__devprof_mark_covered";

// A call of DecisionMark has (bitmap, the decision's first bit, the number of its bits, which of these, array of flags, list of implied
// flags). The list is a constant, or null: pairs of a flag's index and the bits of which one is set if and only if the flag is set.

// How often a flag is not in memory yet, as weights of branches.
constexpr uint32_t Seldom = 1, Often = 2000;

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

CallInst *callOf(StringRef Name, Instruction &I) {
    auto *Call = dyn_cast<CallInst>(&I);
    Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    return Callee && Callee->isDeclaration() && !Callee->isIntrinsic() && Callee->getName() == Name ? Call : nullptr;
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

// The ways through a decision, as clang writes it: it sets a variable to 0, adds a constant to it for the value of each condition, and
// sets the bit of the sum. So there is a bit for each way, and a flag of a block on some of these ways is set if and only if one of
// their bits is set. The same holds for a block that the decision's result leads to.
class WaysThrough {
public:
    // A flag, and the bits that imply it.
    using Implied = std::pair<InstrProfCoverInst *, uint32_t>;

    // Empty if anything is not as expected. `Bits`: the number of the decision's bits, at most 32.
    static SmallVector<Implied> implied(StoreInst &Reset, unsigned Bits, const DominatorTree &Dominators) {
        WaysThrough Found(Reset, Bits);
        if (!Found.findAll())
            return {};
        SmallVector<Implied> All;
        for (auto &[Cover, With] : Found.BitsOf) {
            uint32_t Without = 0;
            for (const Way &Each : Found.Done)
                if (!is_contained(Each.Flags, Cover))
                    Without |= 1u << Each.Number;
            if (!(With & Without) && Dominators.dominates(&Reset, Cover))
                All.push_back({Cover, With});
        }
        return All;
    }

private:
    static constexpr size_t MaxWays = 64;
    struct Way {
        BasicBlock::iterator At;
        unsigned Number = 0; // the variable's value
        // Conditions, loaded numbers, and what phis are on this way.
        SmallDenseMap<Value *, Value *> Known;
        SmallVector<InstrProfCoverInst *> Flags;
        SmallPtrSet<BasicBlock *, 8> Visited;
        BasicBlock *Decided = nullptr; // where the bit is set
    };
    StoreInst &Reset;
    Value *Variable = Reset.getPointerOperand()->stripPointerCasts();
    unsigned Bits;
    std::vector<Way> Left, Done;
    MapVector<InstrProfCoverInst *, uint32_t> BitsOf;

    WaysThrough(StoreInst &Reset, unsigned Bits) : Reset(Reset), Bits(Bits) {}

    bool findAll() {
        Way First;
        First.At = std::next(Reset.getIterator());
        First.Visited.insert(Reset.getParent());
        Left.push_back(std::move(First));
        while (!Left.empty()) {
            Way Next = std::move(Left.back());
            Left.pop_back();
            if (Done.size() + Left.size() >= MaxWays || !go(std::move(Next)))
                return false;
        }
        for (const Way &Each : Done)
            for (InstrProfCoverInst *Cover : Each.Flags)
                BitsOf[Cover] |= 1u << Each.Number;
        return !Done.empty();
    }

    // To the end of the way, or to where it forks.
    bool go(Way Of) {
        for (;; ++Of.At) {
            Instruction &I = *Of.At;
            if (I.isTerminator())
                return leave(I, Of);
            if (auto *Cover = dyn_cast<InstrProfCoverInst>(&I)) {
                Of.Flags.push_back(Cover);
            } else if (auto *Update = dyn_cast<InstrProfMCDCTVBitmapUpdate>(&I)) {
                if (Update->getMCDCCondBitmapAddr()->stripPointerCasts() != Variable)
                    continue;
                if (Of.Decided || Of.Number >= Bits)
                    return false;
                Of.Decided = I.getParent();
            } else if (auto *Load = dyn_cast<LoadInst>(&I)) {
                if (Load->getPointerOperand()->stripPointerCasts() == Variable)
                    Of.Known[Load] = ConstantInt::get(Load->getType(), Of.Number);
            } else if (auto *Store = dyn_cast<StoreInst>(&I);
                       Store && Store->getPointerOperand()->stripPointerCasts() == Variable) {
                if (Of.Decided)
                    return end(Of);
                Value *Unknown = nullptr;
                std::optional<unsigned> Sum = number(Store->getValueOperand(), Of, Unknown);
                if (!Sum)
                    return Unknown && fork(Unknown, Of);
                Of.Number = *Sum;
            } else if (!isa<InstrProfInstBase>(I) && !I.willReturn()) {
                // Before the bit is set, the thread may end, or on AMD GPUs the wave, with lanes that are on other ways.
                return Of.Decided && end(Of);
            }
        }
    }

    bool end(Way &Of) {
        Done.push_back(std::move(Of));
        return true;
    }

    // Behind the decision, only into a block that has no other predecessor.
    bool leave(Instruction &Last, Way &Of) {
        BasicBlock *Block = Last.getParent(), *Next = nullptr;
        if (Of.Decided && Of.Decided != Block)
            return end(Of);
        if (auto *Branch = dyn_cast<CondBrInst>(&Last)) {
            Value *Condition = resolve(Branch->getCondition(), Of);
            auto *Constant = dyn_cast<ConstantInt>(Condition);
            if (!Constant)
                return fork(Condition, Of);
            Next = Branch->getSuccessor(Constant->isOne() ? 0 : 1);
        } else if (isa<UncondBrInst>(Last)) {
            Next = Last.getSuccessor(0);
        }
        if (Of.Decided && (!Next || Next->getSinglePredecessor() != Block))
            return end(Of);
        if (!Next || !Of.Visited.insert(Next).second)
            return false;
        for (PHINode &Phi : Next->phis())
            Of.Known[&Phi] = resolve(Phi.getIncomingValueForBlock(Block), Of);
        Of.At = Next->getFirstNonPHIIt();
        Left.push_back(std::move(Of));
        return true;
    }

    bool fork(Value *Condition, const Way &Of) {
        while (match(Condition, m_Not(m_Value(Condition))))
            ;
        if (!Condition->getType()->isIntegerTy(1))
            return false;
        for (bool Holds : {true, false}) {
            Left.push_back(Of);
            Left.back().Known[Condition] = ConstantInt::getBool(Condition->getContext(), Holds);
        }
        return true;
    }

    // A constant, if it is known.
    Value *resolve(Value *Of, const Way &On) {
        if (Value *Known = On.Known.lookup(Of))
            return Known;
        Value *Inverted;
        if (!match(Of, m_Not(m_Value(Inverted))))
            return Of;
        auto *Constant = dyn_cast<ConstantInt>(resolve(Inverted, On));
        return Constant ? ConstantInt::getBool(Of->getContext(), !Constant->isOne()) : Of;
    }

    // Sets `Unknown` to the condition that it depends on.
    std::optional<unsigned> number(Value *Of, const Way &On, Value *&Unknown) {
        Of = resolve(Of, On);
        if (auto *Constant = dyn_cast<ConstantInt>(Of))
            return unsigned(Constant->getZExtValue());
        Value *A, *B, *Condition;
        if (match(Of, m_Add(m_Value(A), m_Value(B)))) {
            std::optional<unsigned> First = number(A, On, Unknown), Second = number(B, On, Unknown);
            return First && Second ? std::optional(*First + *Second) : std::nullopt;
        }
        if (!match(Of, m_Select(m_Value(Condition), m_Value(A), m_Value(B))))
            return {};
        Condition = resolve(Condition, On);
        if (auto *Constant = dyn_cast<ConstantInt>(Condition))
            return number(Constant->isOne() ? A : B, On, Unknown);
        Unknown = Condition;
        return {};
    }
};

// Before LLVM lowers its intrinsics, of which each has its decision's first bit: the marks get their bitmap when it exists.
struct MarkDecisions : PassInfoMixin<MarkDecisions> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        bool Changed = false;
        for (Function &F : M)
            Changed |= isGpu(M) && mark(F);
        return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }

private:
    static bool mark(Function &F) {
        // By their variable.
        MapVector<Value *, SmallVector<InstrProfMCDCTVBitmapUpdate *>> Updates;
        SmallVector<uint64_t> Firsts;
        uint64_t Size = 0;
        for (Instruction &I : instructions(F))
            if (auto *Update = dyn_cast<InstrProfMCDCTVBitmapUpdate>(&I)) {
                Updates[Update->getMCDCCondBitmapAddr()->stripPointerCasts()].push_back(Update);
                Firsts.push_back(Update->getBitmapIndex()->getZExtValue());
            } else if (auto *Parameters = dyn_cast<InstrProfMCDCBitmapParameters>(&I)) {
                Size = Parameters->getNumBitmapBits()->getZExtValue();
            }
        if (Updates.empty())
            return false;
        sort(Firsts);
        auto BitsOf = [&](InstrProfMCDCTVBitmapUpdate &Update) {
            auto *Next = upper_bound(Firsts, Update.getBitmapIndex()->getZExtValue());
            return (Next == Firsts.end() ? Size : *Next) - Update.getBitmapIndex()->getZExtValue();
        };
        DominatorTree Dominators(F);
        for (auto &[Variable, Of] : Updates) {
            Constant *List = implied(F, *Variable, Of, BitsOf(*Of.front()), Dominators);
            for (InstrProfMCDCTVBitmapUpdate *Update : Of) {
                IRBuilder<> Here(Update);
                Value *Index = Here.CreateLoad(Here.getInt32Ty(), Update->getMCDCCondBitmapAddr());
                auto *None = ConstantPointerNull::get(Here.getPtrTy());
                createMark(Here, DecisionMark,
                           {None, Here.getInt32(Update->getBitmapIndex()->getZExtValue()), Here.getInt32(BitsOf(*Update)), Index, None, List});
            }
        }
        return true;
    }

    // Removes the flags that the decision's bits imply, and returns their list.
    static Constant *implied(Function &F, Value &Variable, ArrayRef<InstrProfMCDCTVBitmapUpdate *> Updates, uint64_t Bits,
                             const DominatorTree &Dominators) {
        StoreInst *Reset = nullptr;
        bool IsOnly = all_of(Updates, [&](auto *Each) { return Each->getBitmapIndex() == Updates.front()->getBitmapIndex(); });
        for (Instruction &I : instructions(F))
            if (auto *Store = dyn_cast<StoreInst>(&I); Store && Store->getPointerOperand()->stripPointerCasts() == &Variable &&
                                                       match(Store->getValueOperand(), m_Zero())) {
                IsOnly &= !Reset;
                Reset = Store;
            }
        auto *None = ConstantPointerNull::get(PointerType::get(F.getContext(), 0));
        if (!Reset || !IsOnly || Bits > 32)
            return None;
        SmallVector<uint32_t> List;
        for (auto [Cover, With] : WaysThrough::implied(*Reset, Bits, Dominators)) {
            List.append({uint32_t(Cover->getIndex()->getZExtValue()), With});
            Cover->eraseFromParent();
        }
        if (List.empty())
            return None;
        Constant *Numbers = ConstantDataArray::get(F.getContext(), List);
        auto *Made = new GlobalVariable(*F.getParent(), Numbers->getType(), true, GlobalValue::PrivateLinkage, Numbers, "__devprof_implied");
        return ConstantExpr::getPointerBitCastOrAddrSpaceCast(Made, None->getType());
    }
};

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
        PreservedAnalyses Kept = Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
        Kept.preserveSet<CFGAnalyses>();
        return Kept;
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

// ---- Which functions may not keep flags in registers.

// What functions do to flags in registers: of a wave that ends, those of all its lanes are lost, and while a wave waits for
// others, nobody sees them.
class Callees {
public:
    // `All`: functions. Those that they call are added.
    Callees(const Module &M, SmallSetVector<Function *, 16> &All, FunctionAnalysisManager &Analyses)
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

// The same value. LLVM does not look at what it is made of before instruction selection.
Value *hidden(IRBuilder<> &Here, Value *Of) {
    return Here.CreateIntrinsic(Intrinsic::expect, {Of->getType()}, {Of, Constant::getNullValue(Of->getType())});
}

// Conditions of copies of a block, of which one holds, or all. Of two, of which one implies the other (`i + 256 < n` and `i < n`), one is
// enough.
struct JoinedConditions {
    bool IsAll;
    Value *Before = nullptr, *Last = nullptr;
    unsigned Operations = 0;

    void add(IRBuilder<> &Here, Value *Condition) {
        const DataLayout &Layout = Here.GetInsertBlock()->getDataLayout();
        auto Implies = [&](Value *A, Value *B) { return isImpliedCondition(A, B, Layout).value_or(false); };
        if (Last && Implies(IsAll ? Last : Condition, IsAll ? Condition : Last))
            return;
        if (Last && !Implies(IsAll ? Condition : Last, IsAll ? Last : Condition))
            Before = ++Operations % MaxOperations == 0 ? hidden(Here, get(Here)) : get(Here);
        Last = Condition;
    }

    // In larger expressions, LLVM looks for a long time for what it can vectorize, and for what implies what.
    static constexpr unsigned MaxOperations = 2;

    // Null if there is no condition.
    Value *get(IRBuilder<> &Here) const {
        return !Before || !Last ? Last : IsAll ? Here.CreateAnd(Before, Last) : Here.CreateOr(Before, Last);
    }
};

// The cases that conditions make: each has a bit for each combination of up to five others that it depends on.
class Cases {
public:
    void add(Value *Condition) { find(Condition, true, 0); }

    unsigned number() const { return 1 << Known.size(); }

    // The cases in which a condition holds: all, if it is null. None if it was not added, or depends on too many.
    std::optional<uint32_t> find(Value *Condition) { return Condition ? find(Condition, false, 0) : ~0u; }

private:
    static constexpr uint32_t Bits[] = {0xaaaaaaaa, 0xcccccccc, 0xf0f0f0f0, 0xff00ff00, 0xffff0000};
    static constexpr unsigned MaxDepth = 8;
    SmallVector<Value *, std::size(Bits)> Known;

    std::optional<uint32_t> find(Value *Condition, bool Adds, unsigned Depth) {
        for (auto [N, Each] : enumerate(Known))
            if (Each == Condition)
                return Bits[N];
        Value *A, *B;
        if (match(Condition, m_Not(m_Value(A)))) {
            std::optional<uint32_t> Of = find(A, Adds, Depth);
            return Of ? std::optional(~*Of) : Of;
        }
        bool IsAnd = match(Condition, m_LogicalAnd(m_Value(A), m_Value(B)));
        if (Depth < MaxDepth && (IsAnd || match(Condition, m_LogicalOr(m_Value(A), m_Value(B))))) {
            std::optional<uint32_t> First = find(A, Adds, Depth + 1), Second = find(B, Adds, Depth + 1);
            if (!First || !Second)
                return {};
            return IsAnd ? *First & *Second : *First | *Second;
        }
        if (!Adds || Known.size() == std::size(Bits))
            return {};
        Known.push_back(Condition);
        return Bits[Known.size() - 1];
    }
};

// ---- Flags in registers.

// A mark, with its condition: null if it always holds.
struct Marked {
    Flag Of;
    Value *Condition;
    CallInst *Call;
    BasicBlock *At; // the block whose flag it is, if there is no condition
};

using Masks = SmallVector<Value *>;

// For some flags, others that are set whenever they are. They have no bit in the masks.
using SetTogether = DenseMap<Flag, SmallVector<Flag>>;

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

// Which flags of a function, or of a piece of code, are not in memory yet, and how they get there. Each flag is a bit of a mask.
class Writer {
public:
    virtual ~Writer() = default;

    // `MayCall`: whether a call costs the function little.
    static std::unique_ptr<Writer> create(Function &F, bool MayCall, ArrayRef<Flag> Flags, const SetTogether &Others = SetTogether());

    virtual unsigned masks() const = 0;

    // The number of the mask, and the bit.
    virtual std::pair<unsigned, unsigned> find(const Flag &Of) const = 0;

    // The flags that are not in memory. `Wanted`: masks; flags that are not in them need not be loaded. Empty: all.
    virtual Masks load(Instruction *Before, ArrayRef<Value *> Wanted) = 0;

    // Sets the flags that are in `Seen` and in `Missing`, and the others that are set together with them.
    void write(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Missing) {
        Masks Fresh = fresh(Before, Seen, Missing);
        Value *Any = anyOf(Before, Fresh);
        if (!match(Any, m_Zero()))
            set(ifNot0(Before, Any, Seldom, Often), Seen, Fresh);
    }

    // The same with one test for `Others`, other words that are seldom not 0. Returns where code is inserted that is executed if any is
    // not 0.
    Instruction *writeWith(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Missing, ArrayRef<Value *> Others) {
        Masks Fresh = fresh(Before, Seen, Missing);
        Value *Any = anyOf(Before, Fresh);
        Instruction *Then = ifNot0(Before, IRBuilder<>(Before).CreateOr(Any, anyOf(Before, Others)), Seldom, Often);
        if (!match(Any, m_Zero()))
            set(ifNot0(Then, Any, 1, 1), Seen, Fresh);
        return Then;
    }

    static void store(Instruction *Before, const Flag &Of) {
        IRBuilder<> Here(Before);
        Here.CreateStore(Here.getInt8(0), address(Here, Of.first, Here.getInt64(Of.second)));
    }

protected:
    Function &F;
    SetTogether Others;

    Writer(Function &F, const SetTogether &Others) : F(F), Others(Others) {}

    // Sets the flags of `Fresh`, masks that are not all 0, or, if it costs less, of `Seen`, and those that are set together with
    // them.
    virtual void set(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Fresh) = 0;

    static Masks fresh(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Missing) {
        Masks Fresh;
        for (auto [S, M] : zip_equal(Seen, Missing))
            Fresh.push_back(IRBuilder<>(Before).CreateAnd(S, M));
        return Fresh;
    }

    static Value *address(IRBuilder<> &Here, Value *Array, Value *Index) {
        return Here.CreateInBoundsGEP(Here.getInt8Ty(), Array, Index);
    }
};

// For AMD GPUs: the code has words in memory in which a bit is 1 while the flag is not in memory, and a list of the flags. It reads
// no flags: their arrays may be those of another file, at any address. The words are in the section of the flags, so that what
// resets flags, which is to fill the section with ones, resets them, too.
class BitWriter : public Writer {
public:
    BitWriter(Function &F, bool MayCall, ArrayRef<Flag> Flags, const SetTogether &Others) : Writer(F, Others), MayCall(MayCall) {
        // Those that are set in most places have the lowest bits: constants up to 64 need no word of code.
        MapVector<Flag, unsigned> Places;
        for (const Flag &Each : Flags)
            ++Places[Each];
        auto Sorted = Places.takeVector();
        stable_sort(Sorted, [](auto &A, auto &B) { return A.second > B.second; });
        for (auto &[Each, Number] : Sorted) {
            Numbers[Each] = Numbered.size();
            Numbered.push_back(Each);
        }
        NumberOfMasks = divideCeil(Numbered.size(), 32);
        Module &M = *F.getParent();
        SmallVector<uint32_t> All(NumberOfMasks, ~0u);
        Constant *Initial = ConstantDataArray::get(F.getContext(), All);
        Words = new GlobalVariable(M, Initial->getType(), false, GlobalValue::PrivateLinkage, Initial, MissingWords, nullptr,
                                   GlobalValue::NotThreadLocal, GlobalMemory);
        Words->setSection("__llvm_prf_cnts");
        // devprof expects the section at a multiple of 8.
        Words->setAlignment(Align(8));
        Words->setComdat(F.getComdat());
    }

    unsigned masks() const override { return NumberOfMasks; }

    std::pair<unsigned, unsigned> find(const Flag &Of) const override {
        unsigned N = Numbers.lookup(Of);
        return {N / 32, N % 32};
    }

    Masks load(Instruction *Before, ArrayRef<Value *> Wanted) override {
        IRBuilder<> Here(Before);
        Masks Missing;
        Value *Base = Words;
        if (NumberOfMasks > 1) {
            // Without this, the compiler computes the address again for each load.
            auto *Type = FunctionType::get(Base->getType(), {Base->getType()}, false);
            Base = Here.CreateCall(InlineAsm::get(Type, "", "=s,0", false), {Base});
        }
        for (unsigned N = 0; N < NumberOfMasks; N++)
            Missing.push_back(!Wanted.empty() && match(Wanted[N], m_Zero())
                                  ? Wanted[N]
                                  : Here.CreateAlignedLoad(Word, Here.CreateConstInBoundsGEP1_32(Word, Base, N), Align(4)));
        return Missing;
    }

private:
    static constexpr unsigned GlobalMemory = 1, ConstantMemory = 4; // address spaces
    static constexpr unsigned MaxStores = 4;                       // more need a loop
    IntegerType *Word = Type::getInt32Ty(F.getContext()), *Long = Type::getInt64Ty(F.getContext());
    bool MayCall;
    SmallVector<Flag> Numbered;
    DenseMap<Flag, unsigned> Numbers;
    unsigned NumberOfMasks;
    GlobalVariable *Words, *List = nullptr;

    void set(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Fresh) override {
        SmallVector<Flag> Stores;
        for (const Flag &Each : Numbered) {
            auto [N, Bit] = find(Each);
            auto *Known = dyn_cast<ConstantInt>(Seen[N]);
            if (Known && !(Known->getZExtValue() >> Bit & 1))
                continue;
            Stores.push_back(Each);
            append_range(Stores, Others.lookup(Each));
            if (!Known || Stores.size() > MaxStores) {
                setAny(Before, Fresh);
                return;
            }
        }
        for (const Flag &Each : Stores)
            store(Before, Each);
        IRBuilder<> Here(Before);
        for (auto [N, Each] : enumerate(Seen))
            if (!match(Each, m_Zero()))
                clear(Here, wordAt(Here, Words, Here.getInt32(N)), Each);
    }

    void clear(IRBuilder<> &Here, Value *At, Value *Bits) {
        updateAtomically(Here, AtomicRMWInst::And, At, Here.CreateNot(Bits));
    }

    Value *wordAt(IRBuilder<> &Here, Value *Words, Value *N) { return Here.CreateInBoundsGEP(Word, Words, N); }

    SyncScope::ID scope() { return F.getContext().getOrInsertSyncScopeID("agent"); }

    // By a call of a function that the file's other functions share, or, because a function would have to keep its return address, by
    // the same code.
    void setAny(Instruction *Before, ArrayRef<Value *> Fresh) {
        if (!List)
            List = createList();
        Function *Routine = MayCall ? routine(Fresh.size()) : nullptr;
        if (!Routine) {
            setInLoop(Before, List, Words, Fresh);
            return;
        }
        SmallVector<Value *> Arguments{List};
        append_range(Arguments, Fresh);
        CallInst *Call = IRBuilder<>(Before).CreateCall(Routine, Arguments);
        Call->setConvergent();
        Call->addParamAttr(0, Attribute::InReg);
    }

    // Null if functions for other GPUs use it.
    Function *routine(unsigned Masks) {
        Module &M = *F.getParent();
        std::string Name = formatv("__devprof_set_flags{0}", Masks);
        Attribute Target = F.getFnAttribute("target-features");
        if (Function *Known = M.getFunction(Name))
            return Known->getFnAttribute("target-features") == Target ? Known : nullptr;
        SmallVector<Type *> Types(1 + Masks, Word);
        Types[0] = PointerType::get(F.getContext(), ConstantMemory);
        auto *Routine = Function::Create(FunctionType::get(Type::getVoidTy(F.getContext()), Types, false),
                                         GlobalValue::InternalLinkage, Name, M);
        Routine->addParamAttr(0, Attribute::InReg);
        for (auto Kind : {Attribute::Convergent, Attribute::NoInline, Attribute::NoUnwind, Attribute::NoRecurse,
                          Attribute::NoCallback, Attribute::WillReturn, Attribute::MustProgress})
            Routine->addFnAttr(Kind);
        for (const char *Kind : {"target-cpu", "target-features"})
            if (Attribute Same = F.getFnAttribute(Kind); Same.isValid())
                Routine->addFnAttr(Same);
        // Kernels need not pass what it does not use.
        for (const char *Kind :
             {"dispatch-ptr", "queue-ptr", "implicitarg-ptr", "dispatch-id", "workgroup-id-x", "workgroup-id-y", "workgroup-id-z",
              "workitem-id-x", "workitem-id-y", "workitem-id-z", "lds-kernel-id", "hostcall-ptr", "heap-ptr", "default-queue",
              "completion-action", "multigrid-sync-arg", "flat-scratch-init", "cluster-id-x", "cluster-id-y", "cluster-id-z"})
            Routine->addFnAttr((Twine("amdgpu-no-") + Kind).str());
        auto *Return = ReturnInst::Create(F.getContext(), BasicBlock::Create(F.getContext(), "", Routine));
        SmallVector<Value *> Arguments(make_pointer_range(Routine->args()));
        IRBuilder<> Here(Return);
        setInLoop(Return, Arguments[0], from(Here, Arguments[0], Arguments[0]), ArrayRef(Arguments).drop_front(1));
        return Routine;
    }

    // Mask by mask, of a mask the bits of one lane after another, of the lane bit by bit:
    //
    //   mask:  own = masks[0] & words[n]
    //   lanes: if own == 0: next
    //          first = own of the first lane; own &= ~first
    //   bits:  at = the lowest bit of first, in the list of flags
    //   flags: store to the flag at; at = the flag that is set together with it, repeat until there is none
    //   flag:  remove the bit from first; bits, until there is none
    //          words[n] &= ~first; lanes
    //   next:  remove masks[0]; n += 1; mask, until there is none
    void setInLoop(Instruction *Before, Value *List, Value *Words, ArrayRef<Value *> Fresh) {
        BasicBlock *Pre = Before->getParent(), *After = SplitBlock(Pre, Before);
        auto Create = [&](const char *Name) { return BasicBlock::Create(F.getContext(), Name, After->getParent(), After); };
        BasicBlock *Mask = Create("devprof.mask"), *Lanes = Create("devprof.lanes"), *First = Create("devprof.first"),
                   *Bits = Create("devprof.bits"), *Flags = Create("devprof.flags"), *FlagEnd = Create("devprof.flag.end"),
                   *Stored = Create("devprof.stored"), *Next = Create("devprof.next");
        Pre->getTerminator()->setSuccessor(0, Mask);

        IRBuilder<> Here(Mask);
        Masks Left;
        Value *N = Here.getInt32(0);
        if (Fresh.size() > 1) {
            for (Value *Each : Fresh) {
                Left.push_back(Here.CreatePHI(Word, 2));
                cast<PHINode>(Left.back())->addIncoming(Each, Pre);
            }
            PHINode *Counted = Here.CreatePHI(Word, 2);
            Counted->addIncoming(N, Pre);
            N = Counted;
        } else {
            Left.push_back(Fresh.front());
        }
        // Another wave may have set them since.
        LoadInst *Current = Here.CreateAlignedLoad(Word, wordAt(Here, Words, N), Align(4));
        Current->setAtomic(AtomicOrdering::Monotonic, scope());
        Value *Missing = Here.CreateAnd(Left.front(), Current);
        Here.CreateBr(Lanes);

        Here.SetInsertPoint(Lanes);
        PHINode *Own = Here.CreatePHI(Word, 2);
        Own->addIncoming(Missing, Mask);
        Here.CreateCondBr(Here.CreateICmpNE(Own, Here.getInt32(0)), First, Next);

        Here.SetInsertPoint(First);
        Value *Of = Here.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane, {Word}, {Own});
        Own->addIncoming(Here.CreateAnd(Own, Here.CreateNot(Of)), Stored);
        Here.CreateBr(Bits);

        Here.SetInsertPoint(Bits);
        PHINode *Rest = Here.CreatePHI(Word, 2);
        Rest->addIncoming(Of, First);
        Value *Bit = Here.CreateBinaryIntrinsic(Intrinsic::cttz, Rest, Here.getTrue());
        Value *Number = Here.CreateAdd(Here.CreateOr(Here.CreateShl(N, 5), Bit), Here.getInt32(1));
        Here.CreateBr(Flags);

        Here.SetInsertPoint(Flags);
        PHINode *At = Here.CreatePHI(Word, 2);
        At->addIncoming(Number, Bits);
        Value *Entry = Here.CreateInBoundsGEP(ArrayType::get(Word, 2), List, At);
        Here.CreateStore(Here.getInt8(0), from(Here, List, Entry));
        Value *Following = Here.CreateAlignedLoad(Word, Here.CreateConstInBoundsGEP1_32(Word, Entry, 1), Align(4));
        At->addIncoming(Following, Flags);
        Here.CreateCondBr(Here.CreateICmpNE(Following, Here.getInt32(0)), Flags, FlagEnd);

        Here.SetInsertPoint(FlagEnd);
        Value *Remaining = Here.CreateAnd(Rest, Here.CreateSub(Rest, Here.getInt32(1)));
        Rest->addIncoming(Remaining, FlagEnd);
        Here.CreateCondBr(Here.CreateICmpNE(Remaining, Here.getInt32(0)), Bits, Stored);

        Here.SetInsertPoint(Stored);
        clear(Here, wordAt(Here, Words, N), Of);
        Here.CreateBr(Lanes);

        Here.SetInsertPoint(Next);
        if (Fresh.size() == 1) {
            Here.CreateBr(After);
            return;
        }
        for (size_t I = 0; I < Left.size(); I++)
            cast<PHINode>(Left[I])->addIncoming(I + 1 < Left.size() ? Left[I + 1] : Here.getInt32(0), Next);
        Value *Counted = Here.CreateAdd(N, Here.getInt32(1));
        cast<PHINode>(N)->addIncoming(Counted, Next);
        auto *Again = Here.CreateCondBr(Here.CreateICmpNE(Counted, Here.getInt32(Fresh.size())), Mask, After);
        // Not unrolled.
        MDNode *Disable = MDNode::get(F.getContext(), MDString::get(F.getContext(), "llvm.loop.unroll.disable"));
        MDNode *Loop = MDNode::getDistinct(F.getContext(), {nullptr, Disable});
        Loop->replaceOperandWith(0, Loop);
        Again->setMetadata(LLVMContext::MD_loop, Loop);
    }

    // What an entry has the distance of.
    Value *from(IRBuilder<> &Here, Value *List, Value *Entry) {
        Value *Distance = Here.CreateSExt(Here.CreateAlignedLoad(Word, Entry, Align(4)), Long);
        return Here.CreateIntToPtr(Here.CreateAdd(Here.CreatePtrToInt(List, Long), Distance), Words->getType());
    }

    // Entry 0 has the distance from the list to the words. Behind it are the flags by their numbers, and behind them the others: the
    // distance from the list, and the number of the entry that is set together with it, or 0.
    GlobalVariable *createList() {
        SmallVector<Flag> Flags(Numbered);
        SmallVector<size_t> Following(Numbered.size(), 0);
        for (auto [N, Each] : enumerate(Numbered)) {
            size_t Last = N;
            for (const Flag &Other : Others.lookup(Each)) {
                Flags.push_back(Other);
                Following[Last] = Flags.size();
                Last = Following.size();
                Following.push_back(0);
            }
        }
        auto *Entry = ArrayType::get(Word, 2);
        auto *Type = ArrayType::get(Entry, 1 + Flags.size());
        auto *List = new GlobalVariable(*F.getParent(), Type, true, GlobalValue::PrivateLinkage, nullptr, "__devprof_flags",
                                        nullptr, GlobalValue::NotThreadLocal, ConstantMemory);
        List->setAlignment(Align(8));
        List->setComdat(F.getComdat());
        Constant *Start = ConstantExpr::getPtrToInt(List, Long);
        SmallVector<Constant *> Entries;
        auto Add = [&](GlobalVariable *Variable, unsigned Index, size_t Next) {
            Constant *At = ConstantExpr::getAdd(ConstantExpr::getPtrToInt(Variable, Long), ConstantInt::get(Long, Index));
            Constant *Distance = ConstantExpr::getTrunc(ConstantExpr::getSub(At, Start), Word);
            Entries.push_back(ConstantArray::get(Entry, {Distance, ConstantInt::get(Word, Next)}));
        };
        Add(Words, 0, 0);
        for (auto [Each, Next] : zip_equal(Flags, Following))
            Add(Each.first, Each.second, Next);
        List->setInitializer(ConstantArray::get(Type, Entries));
        return List;
    }
};

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

// For NVIDIA GPUs: the code loads the flags themselves. Bit 8 * i + s of a mask is for byte i of the mask's s-th word of flags. The
// words of memory have 0xff or 0 in each byte, so that (word & 0x01010101 << s) has the flags in the bits of the mask.
class ByteWriter : public Writer {
public:
    ByteWriter(Function &F, ArrayRef<Flag> Flags, const SetTogether &Others) : Writer(F, Others) {
        MapVector<GlobalVariable *, SmallVector<unsigned>> Indices;
        for (const Flag &Each : Flags)
            Indices[Each.first].push_back(Each.second);
        for (auto &[Array, Of] : Indices) {
            sort(Of);
            for (unsigned Index : Of)
                if (Words.empty() || Words.back().Array != Array || Words.back().First != Index / 4 * 4)
                    add(Array, Index / 4 * 4).Used = 1 << Index % 4;
                else
                    Words.back().Used |= 1 << Index % 4;
        }
    }

    unsigned masks() const override { return divideCeil(Words.size(), WordsPerMask); }

    std::pair<unsigned, unsigned> find(const Flag &Of) const override {
        unsigned N = Numbers.lookup({Of.first, Of.second / 4 * 4});
        return {N / WordsPerMask, Of.second % 4 * 8 + N % WordsPerMask};
    }

    Masks load(Instruction *Before, ArrayRef<Value *> Wanted) override {
        IRBuilder<> Here(Before);
        Masks Missing(masks(), Here.getInt32(0));
        for (auto [N, Each] : enumerate(Words)) {
            uint32_t Bits = bits(Each, N);
            auto *Known = Wanted.empty() ? nullptr : dyn_cast<ConstantInt>(Wanted[N / WordsPerMask]);
            if (Known && !(Known->getZExtValue() & Bits))
                continue;
            Value *&Mask = Missing[N / WordsPerMask];
            Value *Loaded = loadWord(Here, Each);
            Mask = Words.size() == 1 ? Loaded : Here.CreateOr(Mask, Here.CreateAnd(Loaded, Here.getInt32(Bits)));
        }
        return Missing;
    }

private:
    static constexpr unsigned WordsPerMask = 8;
    struct Word {
        GlobalVariable *Array;
        unsigned First;    // the index of its first flag
        unsigned Used = 0; // a bit per flag
    };
    SmallVector<Word> Words;
    DenseMap<std::pair<GlobalVariable *, unsigned>, unsigned> Numbers;

    static uint32_t bits(const Word &W, unsigned N) {
        uint32_t Bits = 0;
        for (unsigned I = 0; I < 4; I++)
            Bits |= uint32_t(W.Used >> I & 1) << (8 * I + N % WordsPerMask);
        return Bits;
    }

    Word &add(GlobalVariable *Array, unsigned First) {
        Numbers[{Array, First}] = Words.size();
        return Words.emplace_back(Word{Array, First});
    }

    void set(Instruction *Before, ArrayRef<Value *> Seen, ArrayRef<Value *> Fresh) override {
        for (auto &[Each, Together] : Others)
            for (const Flag &Other : Together)
                store(Before, Other);
        // Neighbouring words of an array are together.
        for (unsigned First = 0, End; First < Words.size(); First = End) {
            GlobalVariable *Array = Words[First].Array;
            uint32_t Bits = 0;
            for (End = First; End < Words.size() && Words[End].Array == Array &&
                              Words[End].First == Words[First].First + 4 * (End - First) &&
                              End / WordsPerMask == First / WordsPerMask;
                 End++)
                Bits |= bits(Words[End], End);
            unsigned N = First / WordsPerMask;
            auto *Known = dyn_cast<ConstantInt>(Seen[N]);
            if (Known)
                setKnown(Before, First, End, uint32_t(Known->getZExtValue()));
            else
                setIn(Before, First, Fresh[N], Bits, Fresh.size() == 1 && End == Words.size() && First == 0);
        }
    }

    Value *loadWord(IRBuilder<> &Here, const Word &Of) {
        auto LoadBytes = [&](unsigned First, unsigned Bytes, Align Alignment) {
            Value *From = address(Here, Of.Array, Here.getInt64(Of.First + First));
            Value *Loaded = Here.CreateAlignedLoad(Here.getIntNTy(8 * Bytes), From, Alignment);
            return Here.CreateShl(Here.CreateZExt(Loaded, Here.getInt32Ty()), 8 * First);
        };
        if (isPowerOf2_32(Of.Used))
            return LoadBytes(Log2_32(Of.Used), 1, Align(1));
        if (isReplaceable(*Of.Array)) {
            Value *Loaded = Here.getInt32(0);
            for (unsigned I = 0; I < 4; I++)
                if (Of.Used >> I & 1)
                    Loaded = Here.CreateOr(Loaded, LoadBytes(I, 1, Align(1)));
            return Loaded;
        }
        unsigned Number = cast<ArrayType>(Of.Array->getValueType())->getNumElements(), Size = Number - Of.First;
        // Up to 16 bytes are loaded at once if they are aligned.
        Align Needed(PowerOf2Ceil(std::clamp(Number / 2 + 1, 4u, 16u)));
        Of.Array->setAlignment(std::max(Of.Array->getAlign().valueOrOne(), Needed));
        if (Size >= 4)
            return LoadBytes(0, 4, Align(4));
        Value *Loaded = Size & 2 ? LoadBytes(0, 2, Align(4)) : Here.getInt32(0);
        return Size & 1 ? Here.CreateOr(Loaded, LoadBytes(Size - 1, 1, Align(1))) : Loaded;
    }

    void setKnown(Instruction *Before, unsigned First, unsigned End, uint32_t Mask) {
        for (unsigned N = First; N < End; N++)
            for (unsigned I = 0; I < 4; I++)
                if (Words[N].Used >> I & 1 && Mask >> (8 * I + N % WordsPerMask) & 1)
                    store(Before, {Words[N].Array, Words[N].First + I});
    }

    // The flags of an array of which a mask has the bits: a loop over those that are set. All bits of the mask are the array's if
    // `IsAll`.
    void setIn(Instruction *Before, unsigned Number, Value *Fresh, uint32_t Bits, bool IsAll) {
        IRBuilder<> Here(Before);
        const Word &At = Words[Number];
        if (isPowerOf2_32(Bits)) { // only in the first word
            if (!IsAll)
                Before = ifNot0(Before, Here.CreateAnd(Fresh, Here.getInt32(Bits)), 1, 1);
            store(Before, {At.Array, At.First + Log2_32(At.Used)});
            return;
        }
        if (!IsAll) {
            Fresh = Here.CreateAnd(Fresh, Here.getInt32(Bits));
            Before = ifNot0(Before, Fresh, 1, 1);
        }
        BasicBlock *Pre = Before->getParent(), *Loop = SplitBlock(Pre, Before), *After = SplitBlock(Loop, Before);
        Here.SetInsertPoint(Loop, Loop->begin());
        PHINode *Left = Here.CreatePHI(Here.getInt32Ty(), 2);
        Left->addIncoming(Fresh, Pre);
        Value *Bit = Here.CreateBinaryIntrinsic(Intrinsic::cttz, Left, Here.getTrue());
        Value *InMask = Here.CreateAnd(Bit, Here.getInt32(WordsPerMask - 1));
        // 4 * (number of the word in the array) + byte
        Value *Index = Here.CreateAdd(Here.CreateShl(InMask, 2), Here.CreateLShr(Bit, 3));
        Index = Here.CreateAdd(Index, Here.getInt32(At.First - 4 * (Number % WordsPerMask)));
        Here.CreateStore(Here.getInt8(0), address(Here, At.Array, Here.CreateZExt(Index, Here.getInt64Ty())));
        Value *Next = Here.CreateAnd(Left, Here.CreateSub(Left, Here.getInt32(1)));
        Left->addIncoming(Next, Loop);
        Instruction *Old = Loop->getTerminator();
        IRBuilder<> AtEnd(Old);
        AtEnd.CreateCondBr(AtEnd.CreateICmpNE(Next, AtEnd.getInt32(0)), Loop, After);
        Old->eraseFromParent();
    }
};

std::unique_ptr<Writer> Writer::create(Function &F, bool MayCall, ArrayRef<Flag> Flags, const SetTogether &Others) {
    if (F.getParent()->getTargetTriple().isNVPTX())
        return std::make_unique<ByteWriter>(F, Flags, Others);
    return std::make_unique<BitWriter>(F, MayCall, Flags, Others);
}

// The decisions of a function. Their bits are in words in registers, of up to 32 bits of a bitmap from a byte on, and where the
// function ends, those that are new are written to the bitmap.
class DecisionsOf {
public:
    explicit DecisionsOf(Function &F) : F(F) {
        for (Instruction &I : instructions(F))
            if (CallInst *Call = callOf(DecisionMark, I)) {
                auto Constant = [&](unsigned N) { return unsigned(cast<ConstantInt>(Call->getArgOperand(N))->getZExtValue()); };
                All.push_back({Call, Call->getArgOperand(0)->stripPointerCasts(), Constant(1), Constant(2), Call->getArgOperand(3),
                               impliedBy(*Call)});
            }
    }

    bool empty() const { return All.empty(); }

    bool inRegisters() const { return !Words.empty(); }

    // Collects the bits. If the function does not wait (`MayMove`), they may be set behind the branch of the block.
    void collect(Instruction *Start, bool MayMove, DominatorTree &Dominators, LoopInfo &Loops) {
        pack();
        for (Word &Each : Words) {
            IRBuilder<> Entry(&F.getEntryBlock(), F.getEntryBlock().begin());
            Each.Seen = Entry.CreateAlloca(Entry.getInt32Ty(), nullptr, "devprof.decided");
            IRBuilder<>(Start).CreateStore(Entry.getInt32(0), Each.Seen);
        }
        MapVector<std::pair<CondBrInst *, Word *>, AtExit> AtExits;
        for (const Decision &Each : All) {
            Word *In = wordOf(Each);
            if (!In)
                continue;
            unsigned Shift = Each.First - In->First;
            CondBrInst *Exit = MayMove ? exitOf(*Each.Call->getParent(), Loops) : nullptr;
            if (ConstantInt *Stays = Exit ? numberIf(Each.Index, parts(Exit->getCondition(), staysIf(*Exit, Loops))) : nullptr) {
                AtExit &At = AtExits[{Exit, In}];
                At.Stay |= bitAt(Stays, Shift);
                At.Leave.push_back({Each.Index, Shift});
            } else {
                IRBuilder<> Here(Each.Call);
                add(Here, *In, bitOf(Each.Index, Shift, Here));
            }
        }
        for (auto &[Of, Bits] : AtExits)
            setAtExit(*Of.first, *Of.second, Bits, Dominators, Loops);
    }

    // Loads what is in memory, for all ends of the function.
    void load(Instruction *Start) {
        for (Word &Each : Words)
            Each.Loaded = loadWord(Start, Each);
    }

    // The bits that are not in memory, a word each.
    Masks fresh(Instruction *Before, bool ClearsSeen) {
        IRBuilder<> Here(Before);
        Masks Fresh;
        for (const Word &Each : Words) {
            Value *Seen = Here.CreateLoad(Here.getInt32Ty(), Each.Seen);
            Fresh.push_back(Here.CreateAnd(Seen, Here.CreateNot(Each.Loaded ? Each.Loaded : loadWord(Before, Each))));
            if (ClearsSeen)
                Here.CreateStore(Here.getInt32(0), Each.Seen);
        }
        return Fresh;
    }

    // Writes them. At least one is new if `IsAny`.
    void set(Instruction *Before, ArrayRef<Value *> Fresh, bool IsAny) {
        for (auto [Each, Bits] : zip_equal(Words, Fresh)) {
            Instruction *Then = IsAny && Words.size() == 1 ? Before : ifNot0(Before, Bits, 1, 1);
            set(Then, Each.Bitmap, IRBuilder<>(Then).getInt32(Each.First / 8), Bits, Each.bytes());
            SmallVector<Implied> Flags;
            SmallDenseSet<unsigned> Known; // first bits: copies of a decision have the same flags
            for (const Decision &Of : All)
                if (wordOf(Of) == &Each && Known.insert(Of.First).second)
                    for (const Implied &Flag : Of.Flags)
                        Flags.push_back({Flag.Of, Flag.Bits << (Of.First - Each.First)});
            setImplied(Then, Bits, Flags);
        }
    }

    void write(Instruction *Before, bool ClearsSeen) {
        if (Words.empty())
            return;
        Masks Fresh = fresh(Before, ClearsSeen);
        set(ifNot0(Before, anyOf(Before, Fresh), Seldom, Often), Fresh, true);
    }

    // Writes what is left where it is, and removes the marks.
    void finish() {
        for (const Decision &Each : All) {
            if (!wordOf(Each)) {
                IRBuilder<> Here(Each.Call);
                Value *Index = Here.CreateAdd(Each.Index, Here.getInt32(Each.First)), *Byte = Here.CreateLShr(Index, 3);
                Value *Bit = Here.CreateShl(Here.getInt32(1), Here.CreateAnd(Index, 7));
                Value *Loaded = Here.CreateZExt(
                    Here.CreateLoad(Here.getInt8Ty(), Here.CreateInBoundsGEP(Here.getInt8Ty(), Each.Bitmap, Byte)), Here.getInt32Ty());
                Instruction *Then = ifNot0(Each.Call, Here.CreateAnd(Bit, Here.CreateNot(Loaded)), Seldom, Often);
                set(Then, Each.Bitmap, Byte, Bit, 1);
                if (!Each.Flags.empty()) // of at most 32 bits
                    setImplied(Then, IRBuilder<>(Then).CreateShl(Here.getInt32(1), Each.Index), Each.Flags);
            }
            Each.Call->eraseFromParent();
        }
        SmallVector<AllocaInst *> Registers;
        for (const Word &Each : Words)
            Registers.push_back(Each.Seen);
        DominatorTree Now(F);
        PromoteMemToReg(Registers, Now);
    }

private:
    // More words would need too many registers.
    static constexpr size_t MaxWords = 8;
    // A flag, and the decision's bits that imply it.
    struct Implied {
        Flag Of;
        uint32_t Bits;
    };
    struct Decision {
        CallInst *Call;
        Value *Bitmap;
        unsigned First, Bits;
        Value *Index;
        SmallVector<Implied> Flags;
    };
    struct Word {
        Value *Bitmap;
        unsigned First, End;
        AllocaInst *Seen = nullptr;
        Value *Loaded = nullptr;

        unsigned bytes() const { return divideCeil(End - First, 8); }
    };
    Function &F;
    SmallVector<Decision> All;
    SmallVector<Word> Words;
    // The bits of choices between numbers, shifted.
    DenseMap<std::pair<PHINode *, unsigned>, PHINode *> Bits;

    static SmallVector<Implied> impliedBy(const CallInst &Mark) {
        auto *Flags = dyn_cast<GlobalVariable>(Mark.getArgOperand(4)->stripPointerCasts());
        auto *List = dyn_cast<GlobalVariable>(Mark.getArgOperand(5)->stripPointerCasts());
        SmallVector<Implied> All;
        if (!Flags || !List)
            return All;
        auto *Numbers = cast<ConstantDataSequential>(List->getInitializer());
        for (unsigned N = 0; N < Numbers->getNumElements(); N += 2)
            All.push_back({{Flags, unsigned(Numbers->getElementAsInteger(N))}, uint32_t(Numbers->getElementAsInteger(N + 1))});
        return All;
    }

    // Sets the flags that new bits imply.
    static void setImplied(Instruction *Before, Value *Bits, ArrayRef<Implied> Flags) {
        MapVector<uint32_t, SmallVector<Flag>> By;
        for (const Implied &Each : Flags)
            By[Each.Bits].push_back(Each.Of);
        for (auto &[Of, Set] : By) {
            Instruction *Then = ifNot0(Before, IRBuilder<>(Before).CreateAnd(Bits, Of), 1, 1);
            for (const Flag &Each : Set)
                Writer::store(Then, Each);
        }
    }

    void pack() {
        MapVector<Value *, SmallVector<std::pair<unsigned, unsigned>>> Ranges;
        for (const Decision &Each : All)
            Ranges[Each.Bitmap].push_back({Each.First, Each.First + Each.Bits});
        for (auto &[Bitmap, Of] : Ranges) {
            sort(Of);
            for (auto [First, End] : Of)
                if (!Words.empty() && Words.back().Bitmap == Bitmap && End - Words.back().First <= 32)
                    Words.back().End = std::max(Words.back().End, End);
                else if (unsigned Start = First / 8 * 8; End - Start <= 32 && Words.size() < MaxWords)
                    Words.push_back({Bitmap, Start, End});
        }
    }

    static void add(IRBuilder<> &Here, const Word &To, Value *Bits) {
        Here.CreateStore(Here.CreateOr(Here.CreateLoad(Here.getInt32Ty(), To.Seen), Bits), To.Seen);
    }

    // ---- Numbers of test vectors, which are sums of constants that depend on conditions.

    // One of two constants. The condition is `Tested`, or, if that is a number, that it is not `No`.
    struct Either {
        Value *Tested;
        ConstantInt *No;
        ConstantInt *If, *Else;
    };

    static std::optional<Either> eitherOf(Value *Of) {
        Value *Condition;
        ConstantInt *If, *Else;
        if (match(Of, m_Select(m_Value(Condition), m_ConstantInt(If), m_ConstantInt(Else))))
            return Either{Condition, nullptr, If, Else};
        auto *Type = cast<IntegerType>(Of->getType());
        if (match(Of, m_ZExt(m_Value(Condition))) && Condition->getType()->isIntegerTy(1))
            return Either{Condition, nullptr, ConstantInt::get(Type, 1), ConstantInt::get(Type, 0)};
        auto *I = dyn_cast<Instruction>(Of);
        if (!I)
            return {};
        const DataLayout &Layout = I->getDataLayout();
        if (auto *Operation = dyn_cast<BinaryOperator>(I); Operation && isa<ConstantInt>(Operation->getOperand(1)))
            if (std::optional<Either> Inner = eitherOf(Operation->getOperand(0))) {
                auto Fold = [&](ConstantInt *Operand) {
                    return dyn_cast_or_null<ConstantInt>(
                        ConstantFoldBinaryOpOperands(Operation->getOpcode(), Operand, cast<Constant>(Operation->getOperand(1)), Layout));
                };
                if (ConstantInt *If = Fold(Inner->If), *Else = Fold(Inner->Else); If && Else)
                    return Either{Inner->Tested, Inner->No, If, Else};
            }
        KnownBits Known = computeKnownBits(I, Layout);
        APInt Unknown = ~(Known.Zero | Known.One);
        if (!Unknown.isPowerOf2())
            return {};
        ConstantInt *No = ConstantInt::get(I->getContext(), Known.One);
        return Either{I, No, ConstantInt::get(I->getContext(), Known.One | Unknown), No};
    }

    // Whether a condition is that of the choice, or its opposite.
    static std::optional<bool> agrees(const Either &Of, Value *Condition) {
        if (Of.Tested == Condition)
            return true;
        if (!Of.No && areOpposite(Of.Tested, Condition))
            return false;
        if (Of.No && match(Condition, m_SpecificICmp(ICmpInst::ICMP_NE, m_Specific(Of.Tested), m_Specific(Of.No))))
            return true;
        if (Of.No && match(Condition, m_SpecificICmp(ICmpInst::ICMP_EQ, m_Specific(Of.Tested), m_Specific(Of.No))))
            return false;
        return {};
    }

    // A number that LLVM knows is too large is of a way that does not exist.
    static uint32_t bitAt(const ConstantInt *Index, unsigned Shift) {
        unsigned At = unsigned(Index->getZExtValue()) + Shift;
        return At < 32 ? 1u << At : 0;
    }

    // Returns 1 << (index + shift), without a shift if the index is one of constants.
    Value *bitOf(Value *Index, unsigned Shift, IRBuilder<> &Here) {
        unsigned Visited = 0;
        if (isChoice(Index, Visited))
            return choice(Index, Shift, Here);
        return Here.CreateShl(Here.getInt32(1), Here.CreateAdd(Index, Here.getInt32(Shift)));
    }

    // Whether a number is one of constants, by what is evaluated before.
    static bool isChoice(Value *Of, unsigned &Visited) {
        constexpr unsigned Most = 32;
        if (isa<ConstantInt>(Of))
            return true;
        if (++Visited > Most)
            return false;
        if (auto *Phi = dyn_cast<PHINode>(Of))
            return all_of(Phi->incoming_values(), [&](Value *Each) { return isChoice(Each, Visited); });
        if (auto *Select = dyn_cast<SelectInst>(Of))
            return isChoice(Select->getTrueValue(), Visited) && isChoice(Select->getFalseValue(), Visited);
        Value *Rest;
        if (match(Of, m_AddLike(m_Value(Rest), m_ConstantInt())))
            return isChoice(Rest, Visited);
        return eitherOf(Of) || isShifted(Of, Visited);
    }

    // A sum of a choice and another number.
    static bool isShifted(Value *Of, unsigned &Visited) {
        Value *Choice;
        return match(Of, m_AddLike(m_Value(Choice), m_Value())) && isa<PHINode>(Choice) && isChoice(Choice, Visited);
    }

    Value *choice(Value *Of, unsigned Shift, IRBuilder<> &Here) {
        if (auto *Known = dyn_cast<ConstantInt>(Of))
            return Here.getInt32(bitAt(Known, Shift));
        if (auto *Select = dyn_cast<SelectInst>(Of)) {
            Value *If = choice(Select->getTrueValue(), Shift, Here), *Else = choice(Select->getFalseValue(), Shift, Here);
            return Here.CreateSelect(Select->getCondition(), If, Else);
        }
        ConstantInt *Added;
        if (Value *Rest; match(Of, m_AddLike(m_Value(Rest), m_ConstantInt(Added))))
            return choice(Rest, Shift + unsigned(Added->getZExtValue()), Here);
        if (auto *Phi = dyn_cast<PHINode>(Of))
            return choice(*Phi, Shift);
        if (std::optional<Either> Two = eitherOf(Of))
            return choice(*Two, Shift, Here);
        auto *Sum = cast<BinaryOperator>(Of);
        return Here.CreateShl(choice(Sum->getOperand(0), Shift, Here), Sum->getOperand(1));
    }

    Value *choice(PHINode &Of, unsigned Shift) {
        if (PHINode *Known = Bits.lookup({&Of, Shift}))
            return Known;
        IRBuilder<> Here(&Of);
        PHINode *Made = Here.CreatePHI(Here.getInt32Ty(), Of.getNumIncomingValues());
        Bits[{&Of, Shift}] = Made;
        DenseMap<BasicBlock *, Value *> From; // a block can be there twice
        for (auto [Each, Block] : zip_equal(Of.incoming_values(), Of.blocks())) {
            Value *&Bit = From[Block];
            if (!Bit) {
                IRBuilder<> AtEnd(Block->getTerminator());
                Bit = choice(Each, Shift, AtEnd);
            }
            Made->addIncoming(Bit, Block);
        }
        return Made;
    }

    Value *choice(const Either &Of, unsigned Shift, IRBuilder<> &Here) {
        Value *If = Here.getInt32(bitAt(Of.If, Shift)), *Else = Here.getInt32(bitAt(Of.Else, Shift));
        if (!Of.No)
            return Here.CreateSelect(Of.Tested, If, Else);
        // The comparison is often there, and flags depend on it, too.
        Instruction *Next = &*Here.GetInsertPoint();
        for (User *Each : Of.Tested->users()) {
            auto *Known = dyn_cast<ICmpInst>(Each);
            if (!Known || Known->getParent() != Next->getParent() || !Known->comesBefore(Next))
                continue;
            if (std::optional<bool> Agrees = agrees(Of, Known))
                return Here.CreateSelect(Known, *Agrees ? If : Else, *Agrees ? Else : If);
        }
        return Here.CreateSelect(Here.CreateICmpNE(Of.Tested, Of.No), If, Else);
    }

    // The branch of the block, if it leaves a loop.
    static CondBrInst *exitOf(BasicBlock &Block, LoopInfo &Loops) {
        auto *Branch = dyn_cast<CondBrInst>(Block.getTerminator());
        Loop *Inside = Loops.getLoopFor(&Block);
        bool IsExit = Branch && Inside && Inside->contains(Branch->getSuccessor(0)) != Inside->contains(Branch->getSuccessor(1));
        return IsExit ? Branch : nullptr;
    }

    static bool staysIf(CondBrInst &Exit, LoopInfo &Loops) {
        return Loops.getLoopFor(Exit.getParent())->contains(Exit.getSuccessor(0));
    }

    // What is known if a condition holds, or does not hold.
    using Conditions = SmallVector<std::pair<Value *, bool>>;
    static Conditions parts(Value *Condition, bool Holds) {
        Conditions All{{Condition, Holds}};
        for (size_t N = 0; N < All.size(); N++) {
            auto [Of, IsTrue] = All[N];
            Value *A, *B;
            if (match(Of, m_Not(m_Value(A))))
                All.push_back({A, !IsTrue});
            else if (IsTrue ? match(Of, m_LogicalAnd(m_Value(A), m_Value(B))) : match(Of, m_LogicalOr(m_Value(A), m_Value(B))))
                All.append({{A, IsTrue}, {B, IsTrue}});
        }
        return All;
    }

    // The number, if it is then a constant.
    static ConstantInt *numberIf(Value *Of, const Conditions &Known) {
        if (auto *Constant = dyn_cast<ConstantInt>(Of))
            return Constant;
        auto IsIf = [&](const Either &Two) -> std::optional<bool> {
            for (auto [Condition, Holds] : Known)
                if (std::optional<bool> Agrees = agrees(Two, Condition))
                    return *Agrees == Holds;
            return {};
        };
        if (std::optional<Either> Two = eitherOf(Of))
            if (std::optional<bool> Is = IsIf(*Two))
                return *Is ? Two->If : Two->Else;
        Value *Condition, *A, *B;
        if (match(Of, m_Select(m_Value(Condition), m_Value(A), m_Value(B))))
            if (std::optional<bool> Is = IsIf({Condition, nullptr, nullptr, nullptr}))
                return numberIf(*Is ? A : B, Known);
        return nullptr;
    }

    // Bits that a branch that leaves a loop decides.
    struct AtExit {
        uint32_t Stay = 0;                               // of lanes that stay
        SmallVector<std::pair<Value *, unsigned>> Leave; // the numbers of those that leave, and how far their bits are shifted
    };

    // Bits of lanes that stay are constants: LLVM knows them from the second iteration on.
    void setAtExit(CondBrInst &Exit, const Word &To, const AtExit &Of, DominatorTree &Dominators, LoopInfo &Loops) {
        BasicBlock *Block = Exit.getParent();
        bool Stays = staysIf(Exit, Loops);
        IRBuilder<> Here(&Exit);
        Value *Seen = Here.CreateLoad(Here.getInt32Ty(), To.Seen);
        Here.CreateStore(Here.CreateOr(Seen, Of.Stay), To.Seen);
        BasicBlock *Behind = Exit.getSuccessor(Stays ? 1 : 0);
        if (!Behind->getSinglePredecessor())
            Behind = SplitEdge(Block, Behind, &Dominators, &Loops);
        IRBuilder<> Outside(Behind, Behind->getFirstInsertionPt());
        Conditions Left = parts(Exit.getCondition(), !Stays);
        for (auto [Index, Shift] : Of.Leave) {
            ConstantInt *Known = numberIf(Index, Left);
            Seen = Outside.CreateOr(Seen, Known ? Outside.getInt32(bitAt(Known, Shift)) : bitOf(Index, Shift, Outside));
        }
        Outside.CreateStore(Seen, To.Seen);
    }

    Word *wordOf(const Decision &Of) {
        auto *Found = find_if(Words, [&](const Word &Each) {
            return Each.Bitmap == Of.Bitmap && Each.First <= Of.First && Of.First + Of.Bits <= Each.End;
        });
        return Found == Words.end() ? nullptr : Found;
    }

    static Value *loadWord(Instruction *Before, const Word &Of) {
        IRBuilder<> Here(Before);
        Value *Loaded = Here.getInt32(0);
        unsigned Done = 0;
        // AMD GPUs can load words from any address.
        Align Known(1);
        auto *Array = dyn_cast<GlobalVariable>(Of.Bitmap);
        if (Array && Array->getParent()->getTargetTriple().isNVPTX() && !isReplaceable(*Array)) {
            Array->setAlignment(std::max(Array->getAlign().valueOrOne(), Align(4)));
            Known = Align(4);
        }
        for (unsigned Size : {4, 2, 1})
            for (; Of.bytes() - Done >= Size; Done += Size) {
                unsigned At = Of.First / 8 + Done;
                Value *From = Here.CreateConstInBoundsGEP1_32(Here.getInt8Ty(), Of.Bitmap, At);
                Value *Part = Here.CreateAlignedLoad(Here.getIntNTy(8 * Size), From, commonAlignment(Known, At));
                Loaded = Here.CreateOr(Loaded, Here.CreateShl(Here.CreateZExt(Part, Here.getInt32Ty()), 8 * Done));
            }
        return Loaded;
    }

    // Sets bits of up to four bytes of the bitmap, by atomic operations on the aligned words around them.
    static void set(Instruction *Before, Value *Bitmap, Value *Byte, Value *Bits, unsigned Bytes) {
        IRBuilder<> Here(Before);
        Type *Word = Here.getInt32Ty(), *Long = Here.getInt64Ty();
        Value *Pointer = Here.CreateInBoundsGEP(Here.getInt8Ty(), Bitmap, Byte), *Address = Here.CreatePtrToInt(Pointer, Long);
        Value *Shift = Here.CreateShl(Here.CreateAnd(Address, 3), 3);
        Value *Aligned = Here.CreateIntToPtr(Here.CreateAnd(Address, ~uint64_t(3)), Pointer->getType());
        Value *Wide = Here.CreateShl(Here.CreateZExt(Bits, Long), Shift);
        updateAtomically(Here, AtomicRMWInst::Or, Aligned, Here.CreateTrunc(Wide, Word));
        if (Bytes == 1)
            return;
        Value *High = Here.CreateTrunc(Here.CreateLShr(Wide, 32), Word);
        IRBuilder<> Then(ifNot0(Before, High, 1, 1));
        updateAtomically(Then, AtomicRMWInst::Or, Then.CreateConstInBoundsGEP1_32(Word, Aligned, 1), High);
    }
};

// Fewer conditions of a flag are a select each.
constexpr unsigned MinJoined = 3;

// Marks keep LLVM from unrolling loops as without them, but a large function compiles faster with marks than with masks, and of
// copies of a block in unrolled loops, masks are smaller if they come last.
constexpr unsigned MaxEarly = 64;

class FlagsOf {
public:
    // `IsOptimizedAgain`: when files are linked.
    FlagsOf(Function &F, const Callees &Calls, bool IsOptimizedAgain)
        : F(F), Calls(Calls), IsOptimizedAgain(IsOptimizedAgain), Dominators(F), Loops(Dominators), Decisions(F) {
        for (Instruction &I : instructions(F))
            if (CallInst *Call = markIn(I))
                if (std::optional<Flag> Of = flagAt(Call->getArgOperand(0), F.getDataLayout())) {
                    Value *Condition = Call->getArgOperand(1);
                    All.push_back({*Of, match(Condition, m_One()) ? nullptr : Condition, Call, Call->getParent()});
                }
    }

    bool isLarge() const { return All.size() > MaxEarly; }

    bool empty() const { return All.empty() && Decisions.empty(); }

    void run() {
        if (!All.empty() && F.getParent()->getTargetTriple().isAMDGCN())
            joinCompares();
        if (IsOptimizedAgain && isLarge())
            hideMinima();
        SmallVector<Instruction *> Ends;
        for (BasicBlock &Block : F)
            if (isa<ReturnInst>(Block.getTerminator()))
                Ends.push_back(endOf(Block));
        if (Calls.mayEnd(F) || !findWaits() || Ends.empty()) {
            writeInPlace();
        } else {
            for (Instruction &I : instructions(F))
                if (callOf(DecisionMark, I))
                    doNotPeel(Loops.getLoopFor(I.getParent()));
            Decisions.collect(start(), Waits.empty(), Dominators, Loops);
            if (loadsFirst())
                Decisions.load(start());
            if (!keep(Ends)) {
                for (Instruction *Each : Waits)
                    Decisions.write(Each, true);
                for (Instruction *Each : Ends)
                    Decisions.write(Each, false);
            }
        }
        Decisions.finish();
        for (Marked &Each : All)
            Each.Call->eraseFromParent();
        for (CallInst *Each : Extra)
            Each->eraseFromParent();
    }

private:
    Function &F;
    const Callees &Calls;
    bool IsOptimizedAgain;
    DominatorTree Dominators;
    LoopInfo Loops;
    SmallVector<Marked> All;
    SmallVector<CallInst *> Extra; // where conditions are joined
    DenseMap<std::pair<BasicBlock *, Value *>, Value *> Opposites;
    DecisionsOf Decisions;
    // Flags are written before these instructions, because the wave may wait there.
    SmallSetVector<Instruction *, 8> Waits;

    // A function that is not a kernel has to keep its return address, unless it is inlined when files are linked.
    bool mayCall() const {
        return isKernel() || (IsOptimizedAgain && !F.hasAddressTaken() && !F.hasFnAttribute(Attribute::NoInline));
    }

    // False if a loop that waits has no block in front of it.
    bool findWaits() {
        for (Loop *L : Loops.getLoopsInPreorder()) {
            if (!Callees::waits(*L))
                continue;
            if (!L->getLoopPreheader() && !InsertPreheaderForLoop(L, &Dominators, &Loops, nullptr, false))
                return false;
            Waits.insert(L->getLoopPreheader()->getTerminator());
            // It waits in the next iteration.
            SmallVector<BasicBlock *> Latches;
            L->getLoopLatches(Latches);
            for (BasicBlock *Each : Latches)
                Waits.insert(Each->getTerminator());
        }
        for (Instruction &I : instructions(F))
            if (Calls.mayWait(I))
                Waits.insert(&I);
        return true;
    }

    // Of a comparison and its opposite, the first one remains. Marks have a condition and its opposite, and each would be computed.
    // A bool in memory is compared with 0 as often as it is truncated.
    void joinCompares() {
        DenseMap<std::pair<Value *, Value *>, SmallVector<CmpInst *>> Known;
        SmallVector<Instruction *> Replaced;
        auto Replace = [&](Instruction *Of, Value *With) {
            Of->replaceAllUsesWith(With);
            Replaced.push_back(Of);
        };
        auto ReplaceOpposites = [&](CmpInst *Of, Value *With) {
            for (User *Each : make_early_inc_range(Of->users()))
                if (!Each->use_empty() && match(Each, m_Not(m_Specific(Of))))
                    Replace(cast<Instruction>(Each), With);
        };
        for (DomTreeNode *Node : depth_first(Dominators.getRootNode()))
            for (Instruction &I : *Node->getBlock()) {
                if (I.use_empty())
                    continue;
                if (Value *Of; match(&I, m_Not(m_Value(Of)))) {
                    if (Value *First = Opposites.try_emplace({I.getParent(), Of}, &I).first->second; First != &I)
                        Replace(&I, First);
                    continue;
                }
                auto *Compare = dyn_cast<CmpInst>(&I);
                if (auto *Bool = dyn_cast<TruncInst>(&I); Bool && Bool->hasNoUnsignedWrap() && Bool->getType()->isIntegerTy(1)) {
                    Value *Of = Bool->getOperand(0);
                    Compare = new ICmpInst(Bool->getIterator(), ICmpInst::ICMP_NE, Of, Constant::getNullValue(Of->getType()));
                    Replace(Bool, Compare);
                }
                if (!Compare || !Compare->getType()->isIntegerTy(1))
                    continue;
                auto &Same = Known[{Compare->getOperand(0), Compare->getOperand(1)}];
                auto Found = find_if(Same, [&](CmpInst *Each) {
                    return Each->getPredicate() == Compare->getInversePredicate() && Dominators.dominates(Each, Compare);
                });
                if (Found == Same.end()) {
                    Same.push_back(Compare);
                    continue;
                }
                (*Found)->andIRFlags(Compare);
                ReplaceOpposites(Compare, *Found);
                Replace(Compare, opposite(*Found, Compare));
            }
        Opposites.clear();
        // If the condition skips a block, LLVM would also compute the opposite, for entering the block.
        for (BasicBlock &Block : F) {
            auto *Branch = dyn_cast<CondBrInst>(Block.getTerminator());
            if (!Branch || Branch->getSuccessor(1)->getSingleSuccessor() != Branch->getSuccessor(0))
                continue;
            auto *Compare = dyn_cast<CmpInst>(Branch->getCondition());
            if (!Compare || Compare->hasOneUse())
                continue;
            IRBuilder<> Here(Compare);
            Value *Opposite = Here.CreateCmp(Compare->getInversePredicate(), Compare->getOperand(0), Compare->getOperand(1));
            ReplaceOpposites(Compare, Opposite);
            Replace(Compare, Here.CreateNot(Opposite));
            Branch->setCondition(Opposite);
            Branch->swapSuccessors();
        }
        for (Instruction *Each : Replaced)
            Each->eraseFromParent();
        for (Marked &Each : All)
            if (Each.Condition)
                Each.Condition = Each.Call->getArgOperand(1);
    }

    // LLVM would check what it knows of all minima and maxima for each comparison with one of them.
    void hideMinima() {
        for (Instruction &I : instructions(F)) {
            auto *Compare = dyn_cast<ICmpInst>(&I);
            auto IsForFlags = [](User *Each) { return Each->getType()->isIntegerTy(1) || markIn(*cast<Instruction>(Each)); };
            if (!Compare || !Compare->getType()->isIntegerTy(1) || !all_of(Compare->users(), IsForFlags))
                continue;
            for (Use &Of : Compare->operands())
                if (isa<MinMaxIntrinsic>(Of)) {
                    IRBuilder<> Here(Compare);
                    Of.set(hidden(Here, Of));
                }
        }
    }

    // ---- In place: marks between which nothing may end or wait are written together.

    void writeInPlace() {
        for (auto &Group : groups([](const Marked &) { return true; })) {
            SmallVector<Flag> Flags;
            for (const Marked *Each : Group)
                Flags.push_back(Each->Of);
            auto To = Writer::create(F, mayCall(), Flags);
            Instruction *Before = Group.back()->Call;
            Masks Seen = valueOf(Before, *To, Group, {});
            To->write(Before, Seen, To->load(Before, Seen));
        }
    }

    // Marks of a block between which nothing may end or wait.
    using Group = SmallVector<const Marked *>;
    SmallVector<Group> groups(function_ref<bool(const Marked &)> IsIn) {
        DenseMap<const Instruction *, const Marked *> Known;
        for (Marked &Each : All)
            if (IsIn(Each))
                Known[Each.Call] = &Each;
        SmallVector<Group> Groups;
        for (BasicBlock &Block : F) {
            bool IsOpen = false;
            for (Instruction &I : Block)
                if (const Marked *Found = Known.lookup(&I)) {
                    if (!std::exchange(IsOpen, true))
                        Groups.emplace_back();
                    Groups.back().push_back(Found);
                } else if (Calls.mayEnd(I) || Calls.mayWait(I)) {
                    IsOpen = false;
                }
        }
        return Groups;
    }

    // Bits that are set if a condition holds: null if always.
    struct Term {
        Value *Condition;
        uint32_t Bits;
    };

    // The bits of the group's marks, and of `Always`.
    Masks valueOf(Instruction *Before, const Writer &To, const Group &Of, ArrayRef<Flag> Always) {
        IRBuilder<> Here(Before);
        Masks All;
        for (unsigned N = 0; N < To.masks(); N++) {
            MapVector<uint32_t, std::vector<Value *>> Conditions;
            for (const Marked *Each : Of)
                if (auto [Mask, Bit] = To.find(Each->Of); Mask == N)
                    Conditions[1u << Bit].push_back(Each->Condition);
            SmallVector<Term> Terms;
            std::map<std::vector<Value *>, Value *> Joined; // of copies of a block, in unrolled loops
            for (auto &[Bit, Each] : Conditions)
                if (is_contained(Each, nullptr))
                    Terms.push_back({nullptr, Bit});
                else if (Each.size() < MinJoined)
                    for (Value *Condition : Each)
                        Terms.push_back({Condition, Bit});
                else {
                    Value *&Any = Joined[Each];
                    if (!Any) {
                        JoinedConditions Chain{false};
                        for (Value *Condition : Each)
                            Chain.add(Here, Condition);
                        Any = Chain.get(Here);
                    }
                    Terms.push_back({Any, Bit});
                }
            All.push_back(valueOf(Here, Terms, bits(To, Always)[N]));
        }
        return All;
    }

    // One select for a condition and its opposite.
    Value *valueOf(IRBuilder<> &Here, ArrayRef<Term> Terms, uint32_t Always) {
        SmallVector<Term> Left, If, Else, Others;
        for (const Term &Each : Terms)
            if (Each.Condition)
                Left.push_back(Each);
            else
                Always |= Each.Bits;
        if (Left.empty())
            return Here.getInt32(Always);
        // What must hold first, and the rest.
        auto Split = [&](Value *Of) {
            Value *First, *Second;
            if (match(Of, m_LogicalAnd(m_Value(First), m_Value(Second))))
                return std::pair(First, Second);
            if (match(Of, m_Not(m_LogicalOr(m_Value(First), m_Value(Second)))))
                return std::pair(Here.CreateNot(First), Here.CreateNot(Second));
            return std::pair(Of, static_cast<Value *>(nullptr));
        };
        Value *Condition = Split(Left.front().Condition).first;
        match(Condition, m_Not(m_Value(Condition)));
        for (const Term &Each : Left) {
            auto [Outer, Rest] = std::pair(Each.Condition, static_cast<Value *>(nullptr));
            if (Outer != Condition && !areOpposite(Outer, Condition))
                std::tie(Outer, Rest) = Split(Outer);
            if (Outer == Condition)
                If.push_back({Rest, Each.Bits});
            else if (areOpposite(Outer, Condition))
                Else.push_back({Rest, Each.Bits});
            else
                Others.push_back(Each);
        }
        Value *Either = Here.CreateSelect(Condition, valueOf(Here, If, Always), valueOf(Here, Else, Always));
        return Others.empty() ? Either : Here.CreateOr(Either, valueOf(Here, Others, 0));
    }

    // ---- In registers.

    using FlagsAt = MapVector<BasicBlock *, SmallVector<Flag>>;

    // Returns whether decisions were written with the flags.
    bool keep(ArrayRef<Instruction *> Ends) {
        for (const Marked &Each : All)
            doNotPeel(Loops.getLoopFor(Each.Call->getParent()));
        // Nothing is gained for one flag, unless it is tested together with decisions.
        if (All.empty() || (!Decisions.inRegisters() && all_of(All, [&](const Marked &Each) { return Each.Of == All.front().Of; }))) {
            writeInPlace();
            return false;
        }

        FlagsAt AtEnd;
        if (Waits.empty()) {
            moveBehindBranches();
            for (const Marked &Each : All)
                if (!Each.Condition)
                    AtEnd[Each.At].push_back(Each.Of);
            AtEnd = place(AtEnd);
        }
        // Flags that are set whenever the function is entered.
        SmallVector<Flag> Always = std::exchange(AtEnd[&F.getEntryBlock()], {});
        DenseSet<Flag> Known(Always.begin(), Always.end());
        auto IsKnown = [&](const Flag &Each) { return Known.contains(Each); };
        for (auto &[Block, Flags] : AtEnd)
            erase_if(Flags, IsKnown);
        AtEnd.remove_if([](auto &Each) { return Each.second.empty(); });
        BlocksOf Setting = blocksOf(AtEnd);
        SmallVector<Group> AtMark = groups([&](const Marked &Each) {
            return (Each.Condition || !Waits.empty()) && !IsKnown(Each.Of) && !isSet(Setting, Each.Of, Each.Call->getParent());
        });
        std::deque<Marked> Added;
        bool Joins = Waits.empty() && F.getParent()->getTargetTriple().isAMDGCN();
        SetTogether Others;
        joinFlags(Others, Always, AtEnd, AtMark);
        if (Joins) {
            if (isLarge())
                moveCopiesInFrontOfBranches(AtEnd, AtMark, Added);
            moveInFrontOfBranches(AtEnd, AtMark, Added);
            joinFlags(Others, Always, AtEnd, AtMark);
            joinConditions(AtMark, Added);
        }

        SmallVector<Flag> Tested = Always;
        for (auto &[Block, Flags] : AtEnd)
            append_range(Tested, Flags);
        for (const Group &Each : AtMark)
            for (const Marked *Mark : Each)
                Tested.push_back(Mark->Of);
        auto To = Writer::create(F, mayCall(), Tested, Others);
        if (AtEnd.empty() && AtMark.empty() && !Decisions.inRegisters()) {
            Masks Seen = constants(bits(*To, Always));
            Instruction *Start = start();
            To->write(Start, Seen, To->load(Start, Seen));
            return false;
        }
        emit(*To, bits(*To, Always), AtEnd, AtMark, Ends);
        return true;
    }

    // Removes flags where others imply them: those are set only where the flag is.
    void joinFlags(SetTogether &Others, SmallVector<Flag> &Always, FlagsAt &AtEnd, SmallVector<Group> &AtMark) {
        if (F.getParent()->getTargetTriple().isNVPTX()) {
            // Other code sets the flags that are tested, too, but not that of a kernel, which is inlined nowhere.
            if (auto Own = find_if(Always, [&](const Flag &Each) { return isOwn(Each); }); Own != Always.end()) {
                std::swap(*Own, Always.front());
                Others[Always.front()].assign(Always.begin() + 1, Always.end());
                Always.resize(1);
            }
            return;
        }
        // Where flags are set: the function, or a block, or a group of marks and one of the cases that their conditions make.
        using Place = std::pair<const void *, uintptr_t>;
        DenseMap<const void *, Cases> CasesIn;
        for (const Group &Each : AtMark) {
            Cases &Of = CasesIn[Each.back()->Call->getParent()];
            for (const Marked *Mark : Each)
                if (Mark->Condition)
                    Of.add(Mark->Condition);
        }
        auto PlacesOf = [&](const void *At, BasicBlock *Block, Value *Condition) {
            SmallVector<Place> All;
            auto Of = CasesIn.find(Block);
            if (Of == CasesIn.end())
                All.push_back({At, 0});
            else if (std::optional<uint32_t> Holds = Of->second.find(Condition))
                for (unsigned N = 0; N < Of->second.number(); N++) {
                    if (*Holds >> N & 1)
                        All.push_back({At, N});
                }
            else
                All.push_back({At, reinterpret_cast<uintptr_t>(Condition)});
            return All;
        };
        MapVector<Flag, SetVector<Place>> Places;
        auto ForEach = [&](function_ref<bool(const Flag &, ArrayRef<Place>)> IsRemoved) {
            erase_if(Always, [&](const Flag &Of) { return IsRemoved(Of, PlacesOf(&F, nullptr, nullptr)); });
            for (auto &[Block, Flags] : AtEnd)
                erase_if(Flags, [&, Block = Block](const Flag &Of) { return IsRemoved(Of, PlacesOf(Block, Block, nullptr)); });
            for (Group &Each : AtMark) {
                BasicBlock *Block = Each.back()->Call->getParent();
                const void *At = Waits.empty() ? static_cast<const void *>(Block) : Each.back();
                erase_if(Each, [&](const Marked *Mark) { return IsRemoved(Mark->Of, PlacesOf(At, Block, Mark->Condition)); });
            }
        };
        ForEach([&](const Flag &Of, ArrayRef<Place> At) {
            Places[Of].insert_range(At);
            return false;
        });
        // Of a flag, the places where no other flag implies it. Those with the fewest places first: they imply others.
        auto All = Places.takeVector();
        stable_sort(All, [](auto &A, auto &B) { return A.second.size() < B.second.size(); });
        DenseMap<Place, SmallVector<size_t>> SetAt;
        DenseMap<Flag, DenseSet<Place>> Own;
        for (auto [N, Each] : enumerate(All)) {
            auto &[Of, At] = Each;
            MapVector<size_t, size_t> Shared;
            for (const Place &Known : At)
                for (size_t Other : SetAt.lookup(Known))
                    ++Shared[Other];
            DenseSet<Place> Left(At.begin(), At.end());
            for (auto [Other, Number] : Shared)
                if (Number == All[Other].second.size()) {
                    for (const Place &Known : Own[All[Other].first])
                        Left.erase(Known);
                    SmallVector<Flag> Implied = Others.lookup(Of);
                    Implied.push_back(Of);
                    for (const Flag &Each : Implied)
                        if (auto &To = Others[All[Other].first]; !is_contained(To, Each))
                            To.push_back(Each);
                }
            if (!Left.empty())
                for (const Place &Known : At)
                    SetAt[Known].push_back(N);
            Own[Of] = std::move(Left);
        }
        ForEach([&](const Flag &Of, ArrayRef<Place> At) {
            return none_of(At, [&](const Place &Known) { return Own[Of].contains(Known); });
        });
        erase_if(AtMark, [](const Group &Each) { return Each.empty(); });
        AtEnd.remove_if([](auto &Each) { return Each.second.empty(); });
    }

    // A mask is the same after the first iteration. LLVM would peel that off, and then, with one iteration less, not unroll the loop.
    // (On AMD GPUs, peeled loops need fewer instructions.)
    void doNotPeel(Loop *L) {
        // Not less than LLVM's limit of peeled iterations, -unroll-peel-max-count.
        constexpr unsigned Most = 7;
        if (L && F.getParent()->getTargetTriple().isNVPTX())
            addStringMetadataToLoop(L, "llvm.loop.peeled.count", Most);
    }

    // LLVM has unrolled what it unrolls without flags. Each choice between flags would let it unroll larger loops. An array that a loop
    // indexes must still be taken apart, if marks kept LLVM from it.
    void doNotUnroll(Loop &L) {
        auto Indexes = [](Instruction &I) {
            if (isa<ExtractElementInst, InsertElementInst>(I))
                return !isa<Constant>(I.getOperand(I.getNumOperands() - 1));
            const Value *Pointer = getLoadStorePointerOperand(&I);
            return Pointer && isa<AllocaInst>(getUnderlyingObject(Pointer));
        };
        if (hasUnrollTransformation(&L) == TM_Unspecified &&
            none_of(L.blocks(), [&](BasicBlock *Block) { return any_of(*Block, Indexes); }))
            addStringMetadataToLoop(&L, "llvm.loop.unroll.disable", 1);
    }

    // One for all instructions of a block.
    Value *opposite(Value *Condition, Instruction *Before) {
        Value *&Known = Opposites[{Before->getParent(), Condition}];
        return Known ? Known : Known = IRBuilder<>(Before).CreateNot(Condition);
    }

    // If one of the two blocks behind a branch has a mark in front of the branch, or a mark there depends on the branch's condition, too, the
    // flags of the other block are set there: half of a select costs as much as all of it.
    void moveInFrontOfBranches(FlagsAt &AtEnd, SmallVector<Group> &AtMark, std::deque<Marked> &Added) {
        for (Group &Each : AtMark) {
            BasicBlock *Block = Each.back()->Call->getParent();
            auto *Branch = dyn_cast<CondBrInst>(Block->getTerminator());
            if (!Branch || Branch->getSuccessor(0) == Branch->getSuccessor(1))
                continue;
            for (unsigned N : {0, 1}) {
                BasicBlock *Behind = Branch->getSuccessor(N);
                auto Found = AtEnd.find(Behind);
                if (Found == AtEnd.end() || Behind->getSinglePredecessor() != Block ||
                    Loops.getLoopFor(Behind) != Loops.getLoopFor(Block))
                    continue;
                Value *Condition = Branch->getCondition();
                bool IsOther = any_of(Each, [&](const Marked *Mark) {
                    Value *Of = Mark->Condition, *First;
                    if (Of && isLarge() && match(Of, m_LogicalAnd(m_Value(First), m_Value())))
                        return First == Condition || areOpposite(First, Condition);
                    return Of && (N == 0 ? areOpposite(Of, Condition) : Of == Condition);
                });
                if (!IsOther)
                    continue;
                CallInst *Call = Each.back()->Call;
                Call->moveBefore(Branch->getIterator());
                if (N == 1)
                    Condition = opposite(Condition, Call);
                for (const Flag &Of : std::exchange(Found->second, {})) {
                    Added.push_back({Of, Condition, Call, Block});
                    Each.push_back(&Added.back());
                }
            }
        }
        AtEnd.remove_if([](auto &Each) { return Each.second.empty(); });
    }

    // Of some blocks, those that the same lanes enter one after the other.
    std::vector<SmallVector<BasicBlock *>> runs(const SmallPtrSetImpl<BasicBlock *> &Blocks) {
        PostDominatorTree PostDominators(F);
        DenseMap<BasicBlock *, unsigned> RunOf;
        std::vector<SmallVector<BasicBlock *>> Runs;
        for (DomTreeNode *Node : depth_first(Dominators.getRootNode())) {
            BasicBlock *Block = Node->getBlock();
            if (!Blocks.contains(Block))
                continue;
            DomTreeNode *Up = Node->getIDom();
            while (Up && !(Blocks.contains(Up->getBlock()) && Loops.getLoopFor(Up->getBlock()) == Loops.getLoopFor(Block) &&
                           PostDominators.dominates(Block, Up->getBlock())))
                Up = Up->getIDom();
            if (Up && !isRepeatedWithout(Up->getBlock(), Block)) {
                RunOf[Block] = RunOf[Up->getBlock()];
            } else {
                RunOf[Block] = Runs.size();
                Runs.emplace_back();
            }
            Runs[RunOf[Block]].push_back(Block);
        }
        return Runs;
    }

    // Copies of a block behind a branch, in an unrolled loop: their flags are set in front of the branches, where the conditions are
    // joined.
    void moveCopiesInFrontOfBranches(FlagsAt &AtEnd, SmallVector<Group> &AtMark, std::deque<Marked> &Added) {
        SmallPtrSet<BasicBlock *, 16> Branches;
        for (auto &[Behind, Flags] : AtEnd) {
            BasicBlock *Block = Behind->getSinglePredecessor();
            auto *Branch = Block ? dyn_cast<CondBrInst>(Block->getTerminator()) : nullptr;
            if (Branch && Branch->getSuccessor(0) != Branch->getSuccessor(1) && Loops.getLoopFor(Block) == Loops.getLoopFor(Behind))
                Branches.insert(Block);
        }
        DenseMap<BasicBlock *, size_t> GroupIn;
        for (auto [N, Each] : enumerate(AtMark))
            GroupIn[Each.back()->Call->getParent()] = N;
        for (auto &Run : runs(Branches)) {
            DenseMap<Flag, unsigned> Copies;
            auto ForEach = [&](function_ref<void(BasicBlock *, unsigned, SmallVector<Flag> &)> Do) {
                for (BasicBlock *Block : Run)
                    for (unsigned N : {0, 1})
                        if (BasicBlock *Behind = Block->getTerminator()->getSuccessor(N); Behind->getSinglePredecessor())
                            if (auto Found = AtEnd.find(Behind); Found != AtEnd.end())
                                Do(Block, N, Found->second);
            };
            ForEach([&](BasicBlock *, unsigned, SmallVector<Flag> &Flags) {
                for (const Flag &Each : Flags)
                    ++Copies[Each];
            });
            ForEach([&](BasicBlock *Block, unsigned N, SmallVector<Flag> &Flags) {
                erase_if(Flags, [&](const Flag &Of) {
                    if (Copies[Of] < MinJoined)
                        return false;
                    auto *Branch = cast<CondBrInst>(Block->getTerminator());
                    auto [Found, IsNew] = GroupIn.try_emplace(Block, AtMark.size());
                    IRBuilder<> Here(Branch);
                    CallInst *Call;
                    if (IsNew) {
                        Call = createMark(Here, Mark, {Of.first, Here.getTrue()});
                        Extra.push_back(Call);
                        AtMark.emplace_back();
                    } else {
                        Call = AtMark[Found->second].back()->Call;
                        Call->moveBefore(Branch->getIterator());
                    }
                    Value *Condition = Branch->getCondition();
                    Added.push_back({Of, N ? opposite(Condition, Call) : Condition, Call, Block});
                    AtMark[Found->second].push_back(&Added.back());
                    return true;
                });
            });
        }
        AtEnd.remove_if([](auto &Each) { return Each.second.empty(); });
    }

    // The conditions of a flag in blocks that the same lanes enter one after the other are joined, one by one.
    void joinConditions(SmallVector<Group> &AtMark, std::deque<Marked> &Added) {
        DenseMap<BasicBlock *, Group *> GroupIn;
        SmallPtrSet<BasicBlock *, 16> Blocks;
        for (Group &Each : AtMark) {
            BasicBlock *Block = Each.back()->Call->getParent();
            GroupIn[Block] = &Each;
            Blocks.insert(Block);
        }
        for (auto &Run : runs(Blocks)) {
            SmallVector<Group *> Groups;
            for (BasicBlock *Block : Run)
                Groups.push_back(GroupIn[Block]);
            joinConditions(Groups, Added);
        }
        erase_if(AtMark, [](const Group &Each) { return Each.empty(); });
    }

    // Whether a lane may enter the block again before it enters the next one.
    static bool isRepeatedWithout(BasicBlock *Block, BasicBlock *Next) {
        SmallPtrSet<BasicBlock *, 16> Found{Next};
        SmallVector<BasicBlock *> Left(successors(Block));
        while (!Left.empty())
            if (BasicBlock *Each = Left.pop_back_val(); Found.insert(Each).second)
                append_range(Left, successors(Each));
        return Found.contains(Block);
    }

    // A flag's mark in a group.
    struct Copy {
        Value *Condition;
        CallInst *End; // the group's last mark
    };

    void joinConditions(ArrayRef<Group *> Run, std::deque<Marked> &Added) {
        MapVector<Flag, SmallVector<Copy>> Copies;
        DenseMap<Flag, Group *> LastOf;
        for (Group *In : Run)
            for (const Marked *Each : *In) {
                Copies[Each->Of].push_back({Each->Condition, In->back()->Call});
                LastOf[Each->Of] = In;
            }
        for (Group *In : Run)
            erase_if(*In, [&](const Marked *Each) { return Copies[Each->Of].size() >= MinJoined; });
        for (auto &[Of, All] : Copies)
            if (All.size() >= MinJoined) {
                CallInst *End = All.back().End;
                Added.push_back({Of, joined(All), End, End->getParent()});
                LastOf[Of]->push_back(&Added.back());
            }
    }

    // Whether any of the conditions holds.
    Value *joined(ArrayRef<Copy> Copies) {
        // A condition that many others depend on is tested once.
        auto OuterOf = [](Value *Condition) {
            Value *Outer = nullptr;
            return match(Condition, m_LogicalAnd(m_Value(Outer), m_Value())) ? Outer : nullptr;
        };
        SmallDenseMap<Value *, unsigned> Outers;
        for (const Copy &Each : Copies)
            ++Outers[OuterOf(Each.Condition)];
        struct Chain {
            JoinedConditions Any{false}, Inverted{true}; // what is inverted in conditions
        };
        MapVector<Value *, Chain> Chains;
        BasicBlock *Block = nullptr;
        for (auto [Condition, End] : Copies) {
            if (BasicBlock *Last = std::exchange(Block, End->getParent()); Last && Last != Block)
                for (auto &[Outer, Each] : Chains)
                    for (Value *Of : {Each.Any.Before, Each.Inverted.Before})
                        keepIn(*Last, Of);
            IRBuilder<> Here(End);
            Value *Outer = OuterOf(Condition);
            if (!Outer || Outers[Outer] < MinJoined)
                Outer = nullptr;
            else
                match(Condition, m_LogicalAnd(m_Value(), m_Value(Condition)));
            Chain &To = Chains[Outer];
            // LLVM would compare again for the opposite of a comparison, so such conditions are made of comparisons themselves.
            Value *First, *Second;
            if (match(Condition, m_Not(m_Value(First)))) {
                To.Inverted.add(Here, First);
            } else if (match(Condition, m_LogicalAnd(m_Value(First), m_Value(Second)))) {
                bool IsNotFirst = match(First, m_Not(m_Value(First))), IsNotSecond = match(Second, m_Not(m_Value(Second)));
                if (IsNotFirst && IsNotSecond)
                    To.Inverted.add(Here, combine(Here, false, First, Second));
                else if (IsNotFirst || IsNotSecond)
                    To.Any.add(Here, Here.CreateXor(First, combine(Here, IsNotSecond, First, Second)));
                else
                    To.Any.add(Here, Condition);
            } else {
                To.Any.add(Here, Condition);
            }
        }
        IRBuilder<> Here(Copies.back().End);
        Value *Or = nullptr;
        for (auto &[Outer, Each] : Chains) {
            Value *Any = Each.Any.get(Here);
            if (Value *All = Each.Inverted.get(Here))
                Any = Any ? Here.CreateOr(Any, Here.CreateNot(All)) : Here.CreateNot(All);
            if (Outer)
                Any = Here.CreateLogicalAnd(Outer, Any);
            Or = Or ? Here.CreateOr(Or, Any) : Any;
        }
        if (isLarge())
            keepIn(*Block, Or);
        return Or;
    }

    // First && Second (`IsAnd`), or First || Second.
    Value *combine(IRBuilder<> &Here, bool IsAnd, Value *First, Value *Second) {
        for (User *Each : First->users()) {
            bool IsSame = IsAnd ? match(Each, m_LogicalAnd(m_Specific(First), m_Specific(Second)))
                                : match(Each, m_LogicalOr(m_Specific(First), m_Specific(Second)));
            if (IsSame && Dominators.dominates(cast<Instruction>(Each), &*Here.GetInsertPoint()))
                return Each;
        }
        return IsAnd ? Here.CreateLogicalAnd(First, Second) : Here.CreateLogicalOr(First, Second);
    }

    // Without this, LLVM would move what joins conditions to the block that uses the result, and each condition, or what it compares,
    // would need a register until then. It moves nothing that two blocks use. (It would try to vectorize what its own block uses.)
    void keepIn(BasicBlock &Block, Value *Joined) {
        auto *Operation = dyn_cast_or_null<Instruction>(Joined);
        if (Operation && match(Operation, m_Not(m_Value(Joined))))
            return keepIn(Block, Joined);
        if (!Operation || !isa<BinaryOperator, IntrinsicInst>(Operation) || Operation->getParent() != &Block ||
            any_of(Operation->users(), [](User *Each) { return isa<IntrinsicInst>(Each); }))
            return;
        for (BasicBlock *Next : successors(&Block))
            if (Next->getUniquePredecessor())
                IRBuilder<>(Next, Next->getFirstInsertionPt())
                    .CreateIntrinsic(Type::getVoidTy(F.getContext()), Intrinsic::fake_use, {Joined});
    }

    // A mark that was moved in front of a branch which is still there is one of the block behind the branch again.
    void moveBehindBranches() {
        PostDominatorTree PostDominators(F);
        MapVector<BasicBlock *, SmallVector<std::pair<Marked *, unsigned>>> Moves;
        SmallPtrSet<BasicBlock *, 16> Stay;
        for (Marked &Each : All) {
            auto *Branch = dyn_cast<CondBrInst>(Each.At->getTerminator());
            if (!Branch || !Each.Condition)
                continue;
            bool IsTrue = Each.Condition == Branch->getCondition();
            if (!IsTrue && !areOpposite(Each.Condition, Branch->getCondition()))
                continue;
            BasicBlock *Behind = Branch->getSuccessor(IsTrue ? 0 : 1);
            Moves[Each.At].push_back({&Each, IsTrue ? 0 : 1});
            if (Branch->getSuccessor(0) == Branch->getSuccessor(1)) {
                Stay.insert(Each.At);
                continue;
            }
            // Half of a select costs as much as all of it. A loop is left once. Ways that meet need no select.
            Loop *Inside = Loops.getLoopFor(Each.At);
            bool IsExit = Inside && !Inside->contains(Behind);
            if (Behind->getSinglePredecessor() == Each.At || IsExit)
                continue;
            if (!waysMeet(Each.At, PostDominators))
                Stay.insert(Each.At);
        }
        for (auto &[Block, Of] : Moves) {
            if (Stay.contains(Block))
                continue;
            for (auto [Each, Successor] : Of) {
                // Found here: to split an exit of a loop changes the branches of other exits.
                BasicBlock *Behind = Block->getTerminator()->getSuccessor(Successor);
                Each->At = Behind->getSinglePredecessor() ? Behind : SplitEdge(Block, Behind, &Dominators, &Loops);
                Each->Condition = nullptr;
            }
        }
    }

    // The blocks between a branch and the block where all ways from it meet, except those in loops. Where they meet, and in front of
    // such a loop, one OR sets the flags of the way that was taken: a constant.
    struct Ways {
        BasicBlock *Start, *End;
        SmallSetVector<BasicBlock *, 16> Between;
        SmallVector<BasicBlock *> BeforeLoops;
        SmallVector<AllocaInst *> Registers; // null: no flags
    };
    // Whether the ways to a block are such ways.
    MapVector<BasicBlock *, bool> Meetings;

    std::optional<Ways> waysTo(BasicBlock *End, const PostDominatorTree &PostDominators) {
        Ways Found{Dominators.getNode(End)->getIDom()->getBlock(), End, {}, {}, {}};
        Loop *Around = Loops.getLoopFor(End);
        if (Loops.getLoopFor(Found.Start) != Around || !PostDominators.dominates(End, Found.Start))
            return {};
        SmallPtrSet<BasicBlock *, 16> Known{Found.Start};
        SmallVector<BasicBlock *> Left(predecessors(End));
        while (!Left.empty()) {
            BasicBlock *Block = Left.pop_back_val();
            if (!Known.insert(Block).second)
                continue;
            append_range(Left, predecessors(Block));
            if (Loops.getLoopFor(Block) != Around)
                continue;
            Found.Between.insert(Block);
            if (any_of(successors(Block), [&](BasicBlock *Next) { return Loops.getLoopFor(Next) != Around; }))
                Found.BeforeLoops.push_back(Block);
        }
        return Found;
    }

    // Whether all ways from the branch of this block meet.
    bool waysMeet(BasicBlock *Block, const PostDominatorTree &PostDominators) {
        DomTreeNode *Node = PostDominators.getNode(Block), *Up = Node ? Node->getIDom() : nullptr;
        BasicBlock *End = Up ? Up->getBlock() : nullptr;
        if (!End || !Dominators.isReachableFromEntry(End) || End == &F.getEntryBlock())
            return false;
        auto [Known, IsNew] = Meetings.try_emplace(End);
        if (IsNew)
            Known->second = waysTo(End, PostDominators).has_value();
        return Known->second;
    }

    // The inner ones first.
    std::vector<Ways> allWays() {
        PostDominatorTree PostDominators(F);
        std::vector<Ways> All;
        for (auto &[End, AreWays] : Meetings)
            if (AreWays)
                if (std::optional<Ways> Found = waysTo(End, PostDominators))
                    All.push_back(std::move(*Found));
        stable_sort(All, [](const Ways &A, const Ways &B) { return A.Between.size() < B.Between.size(); });
        return All;
    }

    bool isKernel() const {
        return F.getCallingConv() == CallingConv::AMDGPU_KERNEL || F.getCallingConv() == CallingConv::PTX_Kernel;
    }

    bool isOwn(const Flag &Of) {
        StringRef Name = Of.first->getName();
        return isKernel() && Name.consume_front("__profc_") && Name == F.getName();
    }

    // A call that must be a tail call is followed by the return.
    static Instruction *endOf(BasicBlock &Block) {
        CallInst *Tail = Block.getTerminatingMustTailCall();
        return Tail ? cast<Instruction>(Tail) : Block.getTerminator();
    }

    Instruction *start() { return &*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca(); }

    // A constant per mask.
    SmallVector<uint32_t> bits(const Writer &To, ArrayRef<Flag> Flags) {
        SmallVector<uint32_t> Bits(To.masks(), 0);
        for (const Flag &Each : Flags) {
            auto [N, Bit] = To.find(Each);
            Bits[N] |= 1u << Bit;
        }
        return Bits;
    }

    Masks constants(ArrayRef<uint32_t> From) {
        Masks All;
        for (uint32_t Each : From)
            All.push_back(ConstantInt::get(Type::getInt32Ty(F.getContext()), Each));
        return All;
    }

    // The blocks in which a flag is set.
    using BlocksOf = DenseMap<Flag, SmallVector<BasicBlock *>>;
    static BlocksOf blocksOf(const FlagsAt &From) {
        BlocksOf Blocks;
        for (auto &[Block, Flags] : From)
            for (const Flag &Each : Flags)
                Blocks[Each].push_back(Block);
        return Blocks;
    }

    // Whether the flag is set whenever the block is entered.
    bool isSet(const BlocksOf &Setting, const Flag &Of, BasicBlock *Block) {
        auto Found = Setting.find(Of);
        return Found != Setting.end() &&
               any_of(Found->second, [&](BasicBlock *Each) { return Dominators.properlyDominates(Each, Block); });
    }

    // Where flags are set. A block that the same lanes enter as another one needs no code of its own, nor does one of which all
    // successors have code.
    FlagsAt place(FlagsAt &Given) {
        PostDominatorTree PostDominators(F);
        DenseMap<BasicBlock *, BasicBlock *> First, Best; // of the blocks that are entered together
        for (DomTreeNode *Node : depth_first(Dominators.getRootNode())) {
            BasicBlock *Block = Node->getBlock();
            DomTreeNode *Up = Node->getIDom();
            BasicBlock *Of = Up && PostDominators.dominates(Block, Up->getBlock()) ? First[Up->getBlock()] : Block;
            First[Block] = Of;
            BasicBlock *&Where = Best[Of];
            if (!Where || Loops.getLoopDepth(Block) < Loops.getLoopDepth(Where))
                Where = Block;
        }
        FlagsAt Placed;
        for (auto &[Block, Flags] : Given)
            if (Dominators.isReachableFromEntry(Block))
                append_range(Placed[Best[First[Block]]], Flags);
        // Copies of a block, in unrolled loops.
        BlocksOf Setting = blocksOf(Placed);
        for (auto &Each : Placed)
            erase_if(Each.second, [&, Block = Each.first](const Flag &Of) { return isSet(Setting, Of, Block); });

        for (DomTreeNode *Node : depth_first(Dominators.getRootNode())) {
            BasicBlock *Block = Node->getBlock();
            auto Found = Placed.find(Block);
            auto Takes = [&](BasicBlock *Next) {
                auto Of = Placed.find(Next);
                return Next->getSinglePredecessor() && Of != Placed.end() && !Of->second.empty() &&
                       Loops.getLoopDepth(Next) <= Loops.getLoopDepth(Block);
            };
            if (Found == Placed.end() || Block == &F.getEntryBlock() || succ_empty(Block) || !all_of(successors(Block), Takes))
                continue;
            SmallVector<Flag> Moved = std::exchange(Found->second, {});
            for (BasicBlock *Next : successors(Block))
                append_range(Placed[Next], Moved);
        }
        return Placed;
    }

    // A load at the start costs an AMD GPU less than one at the end. Registers are not kept over calls.
    bool loadsFirst() {
        auto IsCall = [](Instruction &I) {
            auto *Call = dyn_cast<CallBase>(&I);
            return Call && !isa<IntrinsicInst>(Call) && !Call->isInlineAsm() && !markIn(I) && !callOf(DecisionMark, I);
        };
        return F.getParent()->getTargetTriple().isAMDGCN() && Waits.empty() && none_of(instructions(F), IsCall);
    }

    void emit(Writer &To, ArrayRef<uint32_t> Always, FlagsAt &AtEnd, ArrayRef<Group> AtMark,
              ArrayRef<Instruction *> Ends) {
        bool LoadsFirst = loadsFirst();
        SmallVector<AllocaInst *> Registers, All;
        Instruction *Start = start();
        auto Create = [&](const char *Name, Value *Initial, Instruction *Before) {
            IRBuilder<> Entry(&F.getEntryBlock(), F.getEntryBlock().begin());
            All.push_back(Entry.CreateAlloca(Entry.getInt32Ty(), nullptr, Name));
            IRBuilder<>(Before).CreateStore(Initial, All.back());
            return All.back();
        };
        for (Value *Initial : constants(Always))
            Registers.push_back(Create("devprof.seen", Initial, Start));
        auto Load = [&](IRBuilder<> &Here) {
            Masks Seen;
            for (AllocaInst *Each : Registers)
                Seen.push_back(Here.CreateLoad(Here.getInt32Ty(), Each));
            return Seen;
        };
        std::vector<Ways> Inside = allWays();
        DenseMap<BasicBlock *, Ways *> WaysAt;
        for (Ways &Each : reverse(Inside))
            for (BasicBlock *Block : Each.Between)
                WaysAt[Block] = &Each;
        SmallPtrSet<Loop *, 8> WithFlags;
        auto Add = [&](Instruction *Before, ArrayRef<Value *> Set, Ways *Of) {
            IRBuilder<> Here(Before);
            for (auto [N, Each] : enumerate(Set)) {
                if (match(Each, m_Zero()))
                    continue;
                Loop *In = IsOptimizedAgain && isLarge() ? Loops.getLoopFor(Before->getParent()) : nullptr;
                for (; In && WithFlags.insert(In).second; In = In->getParentLoop())
                    doNotUnroll(*In);
                Value *Register = Registers[N];
                if (Of) {
                    Of->Registers.resize(Registers.size());
                    if (!Of->Registers[N])
                        Of->Registers[N] = Create("devprof.way", Here.getInt32(0), Of->Start->getTerminator());
                    Register = Of->Registers[N];
                }
                Here.CreateStore(Here.CreateOr(Here.CreateLoad(Here.getInt32Ty(), Register), Each), Register);
            }
        };
        for (const Group &Each : AtMark) {
            CallInst *Last = Each.back()->Call;
            Add(Last, valueOf(Last, To, Each, std::exchange(AtEnd[Last->getParent()], {})), WaysAt.lookup(Last->getParent()));
        }
        for (auto &[Block, Flags] : AtEnd)
            Add(endOf(*Block), constants(bits(To, Flags)), WaysAt.lookup(Block));
        for (Ways &Each : Inside) {
            auto Take = [&](Instruction *Before, bool IsReset) {
                IRBuilder<> Here(Before);
                Masks Taken;
                for (AllocaInst *Register : Each.Registers) {
                    Taken.push_back(Register ? cast<Value>(Here.CreateLoad(Here.getInt32Ty(), Register)) : Here.getInt32(0));
                    if (Register && IsReset)
                        Here.CreateStore(Here.getInt32(0), Register);
                }
                Add(Before, Taken, WaysAt.lookup(Each.End));
            };
            Take(&*Each.End->getFirstInsertionPt(), false);
            for (BasicBlock *Block : Each.BeforeLoops)
                Take(Block->getTerminator(), true);
        }
        Masks Missing;
        if (LoadsFirst)
            Missing = To.load(Start, {});
        auto Write = [&](Instruction *Before, bool ClearsDecisions) {
            IRBuilder<> Here(Before);
            Masks Seen = Load(Here), Unset = LoadsFirst ? Missing : To.load(Before, Seen);
            if (Masks Bits = Decisions.fresh(Before, ClearsDecisions); Bits.empty())
                To.write(Before, Seen, Unset);
            else
                Decisions.set(To.writeWith(Before, Seen, Unset, Bits), Bits, false);
        };
        for (Instruction *Each : Waits) {
            Write(Each, true);
            for (AllocaInst *Register : Registers)
                IRBuilder<>(Each).CreateStore(ConstantInt::get(Register->getAllocatedType(), 0), Register);
        }
        for (Instruction *Each : Ends)
            Write(Each, false);
        DominatorTree Now(F);
        PromoteMemToReg(All, Now);
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
        LeftToLink.clear();
        SmallSetVector<Function *, 16> Now;
        for (Function &F : M)
            if (auto Found = Marks.find(&F); Found != Marks.end()) {
                if (IsLast || Found->second <= MaxEarly)
                    Now.insert(&F);
                else if (IsOptimizedAgain)
                    LeftToLink.insert(&F);
            }
        SmallSetVector<Function *, 16> Called = Now;
        Callees Calls(M, Called, InFunctions);
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
        PreservedAnalyses Kept, Blocks;
        Blocks.preserveSet<CFGAnalyses>();
        for (Function &F : M)
            InFunctions.invalidate(F, Now.contains(&F) ? PreservedAnalyses::none() : Blocks);
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
