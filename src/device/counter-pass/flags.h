// Replaces the marks of a function by flags in registers.
#pragma once
#include "callees.h"
#include "conditions.h"
#include "decisions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include <deque>
#include <map>
#include <vector>

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

// A mark, with its condition: null if it always holds.
struct Marked {
    Flag Of;
    Value *Condition;
    CallInst *Call;
    BasicBlock *At; // the block whose flag it is, if there is no condition
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
    // A bool in memory is compared with 0 also where it was truncated.
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

} // namespace
