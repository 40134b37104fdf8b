// The bits of decisions (MC/DC).
#pragma once
#include "writers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include <optional>

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

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

} // namespace
