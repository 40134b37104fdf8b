// A pass plugin for clang (-fpass-plugin=) for device code with byte coverage (-enable-single-byte-coverage): a function keeps its
// flags in registers, and writes those that are not in memory yet where it ends. README.md has the rules.
//
// A flag is a byte that LLVM's code sets to 0 in each block of the source code; before, it is 0xff. This plugin
//
// 1. replaces the stores by calls (marks) before the code is optimized,
// 2. moves marks in front of branches, so that they do not keep LLVM from making selects,
// 3. replaces the marks by code when functions are inlined.
#include "updates.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

// Stands for LLVM's store to a flag: (flag, whether the block is entered). No code calls it in the end.
constexpr StringLiteral Mark = "__devprof_mark_covered";

// How often a flag is not in memory yet, as weights of branches.
constexpr uint32_t Seldom = 1, Often = 2000;

bool isGpu(const Module &M) { return M.getTargetTriple().isAMDGCN() || M.getTargetTriple().isNVPTX(); }

struct Flag {
    GlobalVariable *Array;
    unsigned Index;
    bool operator==(const Flag &Other) const { return Array == Other.Array && Index == Other.Index; }
};

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

CallInst *markIn(Instruction &I) {
    auto *Call = dyn_cast<CallInst>(&I);
    Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    return Callee && Callee->getName() == Mark ? Call : nullptr;
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

struct MarkFlags : PassInfoMixin<MarkFlags> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        shareVersion(M);
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
            Changed |= isGpu(M) && mark(F);
        return Changed;
    }

private:
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
        Module &M = *Before->getModule();
        IRBuilder<> Here(Before);
        FunctionCallee Callee = M.getOrInsertFunction(Mark, Here.getVoidTy(), Here.getPtrTy(), Here.getInt1Ty());
        auto *Declared = cast<Function>(Callee.getCallee());
        for (auto Kind : {Attribute::NoUnwind, Attribute::WillReturn, Attribute::NoCallback, Attribute::NoSync, Attribute::NoFree})
            Declared->addFnAttr(Kind);
        Declared->setMemoryEffects(MemoryEffects::inaccessibleMemOnly(ModRefInfo::Mod));
        CallInst *Call = Here.CreateCall(
            Callee, {ConstantExpr::getPointerBitCastOrAddrSpaceCast(cast<Constant>(Pointer), Here.getPtrTy()), Here.getTrue()});
        // Two marks do not become one whose flag depends on where the lane comes from.
        Call->addFnAttr(Attribute::NoMerge);
    }
};

struct MoveMarks : PassInfoMixin<MoveMarks> {
    PreservedAnalyses run(Function &F, FunctionAnalysisManager &Analyses) {
        if (F.isDeclaration() || !F.getParent()->getFunction(Mark))
            return PreservedAnalyses::all();
        auto IsMark = [](Instruction &I) { return markIn(I) != nullptr; };
        auto SetCondition = [](Instruction &I, Value *Goes) {
            IRBuilder<> Here(&I);
            CallInst *Call = markIn(I);
            Call->setArgOperand(1, Here.CreateLogicalAnd(Goes, Call->getArgOperand(1)));
        };
        bool Changed = moveBeforeBranches(F, Analyses, IsMark, SetCondition);
        return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }
};

// ---- Which functions may not keep flags in registers.

// What functions do to flags in registers: of a wave that ends, those of all its lanes are lost, and while a wave waits for
// others, nobody sees them.
class Callees {
public:
    explicit Callees(Module &M) : Nvidia(M.getTargetTriple().isNVPTX()) {
        DenseMap<Function *, SmallVector<Function *>> Callers;
        SmallVector<Function *> ToEnd, ToWait;
        for (Function &F : M) {
            if (F.isDeclaration())
                continue;
            for (Instruction &I : instructions(F)) {
                if (Function *Callee = definitionCalled(I))
                    Callers[Callee].push_back(&F);
                else if (mayEnd(I))
                    ToEnd.push_back(&F);
            }
            DominatorTree Dominators(F);
            LoopInfo Loops(Dominators);
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
        return !Callee || !(Callee->isIntrinsic() || Callee->hasFnAttribute(Attribute::WillReturn));
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
            return Load->isVolatile() || Load->isAtomic();
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

// ---- Flags in registers.

// A mark, with its condition: null if it always holds.
struct Marked {
    Flag Of;
    Value *Condition;
    CallInst *Call;
    BasicBlock *At; // the block whose flag it is, if there is no condition
};

// Where the flags of a function, or of a piece of code, are in masks: bit 8 * i + s of a mask is for byte i of the mask's s-th
// word of flags. The words of memory have 0xff or 0 in each byte, so that (word & 0x01010101 << s) has the flags in the bits of
// the mask.
class Layout {
public:
    static constexpr unsigned WordsPerMask = 8;

    explicit Layout(ArrayRef<Flag> Flags) {
        MapVector<GlobalVariable *, SmallVector<unsigned>> Indices;
        for (const Flag &Each : Flags)
            Indices[Each.Array].push_back(Each.Index);
        for (auto &[Array, Of] : Indices) {
            sort(Of);
            for (unsigned Index : Of)
                if (Words.empty() || Words.back().Array != Array || Words.back().First != Index / 4 * 4)
                    add(Array, Index / 4 * 4).Used = 1 << Index % 4;
                else
                    Words.back().Used |= 1 << Index % 4;
        }
    }

    struct Word {
        GlobalVariable *Array;
        unsigned First;    // the index of its first flag
        unsigned Used = 0; // a bit per flag
    };
    ArrayRef<Word> words() const { return Words; }
    unsigned masks() const { return divideCeil(Words.size(), WordsPerMask); }

    // The number of the mask, and the bit.
    std::pair<unsigned, unsigned> find(const Flag &Of) const {
        unsigned N = Numbers.lookup({Of.Array, Of.Index / 4 * 4});
        return {N / WordsPerMask, Of.Index % 4 * 8 + N % WordsPerMask};
    }

    static uint32_t bits(const Word &W, unsigned N) {
        uint32_t Bits = 0;
        for (unsigned I = 0; I < 4; I++)
            Bits |= uint32_t(W.Used >> I & 1) << (8 * I + N % WordsPerMask);
        return Bits;
    }

private:
    SmallVector<Word> Words;
    DenseMap<std::pair<GlobalVariable *, unsigned>, unsigned> Numbers;

    Word &add(GlobalVariable *Array, unsigned First) {
        Numbers[{Array, First}] = Words.size();
        return Words.emplace_back(Word{Array, First});
    }
};

using Masks = SmallVector<Value *>;

// Writes flags of a layout.
class Writer {
public:
    explicit Writer(Function &F) : F(F), Nvidia(F.getParent()->getTargetTriple().isNVPTX()) {}

    // The flags that are not in memory. `Wanted`: masks; flags that are not in them need not be loaded. Empty: all.
    Masks load(Instruction *Before, const Layout &In, ArrayRef<Value *> Wanted) {
        IRBuilder<> Here(Before);
        Masks Missing(In.masks(), Here.getInt32(0));
        DenseMap<GlobalVariable *, Value *> Bases;
        for (const Layout::Word &Word : In.words())
            if (!Nvidia && Word.First >= 16) // two loads
                Bases[Word.Array] = inRegister(Here, Word.Array);
        for (auto [N, Word] : enumerate(In.words())) {
            uint32_t Bits = Layout::bits(Word, N);
            auto *Known = Wanted.empty() ? nullptr : dyn_cast<ConstantInt>(Wanted[N / Layout::WordsPerMask]);
            if (Known && !(Known->getZExtValue() & Bits))
                continue;
            Value *&Mask = Missing[N / Layout::WordsPerMask];
            Value *Loaded = loadWord(Here, Word, Bases[Word.Array]);
            Mask = In.words().size() == 1 ? Loaded : Here.CreateOr(Mask, Here.CreateAnd(Loaded, Here.getInt32(Bits)));
        }
        return Missing;
    }

    // Sets the flags that are in `Seen` and in `Missing`, and, if there is one, those of `Others`.
    void write(Instruction *Before, const Layout &In, ArrayRef<Value *> Seen, ArrayRef<Value *> Missing,
               ArrayRef<Flag> Others = {}) {
        IRBuilder<> Here(Before);
        Value *Any = Here.getInt32(0);
        Masks Fresh;
        for (auto [S, M] : zip_equal(Seen, Missing)) {
            Fresh.push_back(Here.CreateAnd(S, M));
            Any = Here.CreateOr(Any, Fresh.back());
        }
        if (match(Any, m_Zero()))
            return;
        Instruction *Then = ifNot0(Before, Any, Seldom, Often);
        for (const Flag &Each : Others)
            store(Then, Each);
        // Neighbouring words of an array are together.
        for (unsigned First = 0, End; First < In.words().size(); First = End) {
            GlobalVariable *Array = In.words()[First].Array;
            uint32_t Bits = 0;
            for (End = First; End < In.words().size() && In.words()[End].Array == Array &&
                              In.words()[End].First == In.words()[First].First + 4 * (End - First) &&
                              End / Layout::WordsPerMask == First / Layout::WordsPerMask;
                 End++)
                Bits |= Layout::bits(In.words()[End], End);
            unsigned N = First / Layout::WordsPerMask;
            auto *Known = dyn_cast<ConstantInt>(Seen[N]);
            if (Known)
                store(Then, In, First, End, uint32_t(Known->getZExtValue()));
            else
                storeIn(Then, In, First, Fresh[N], Bits, Fresh.size() == 1 && End == In.words().size() && First == 0);
        }
    }

private:
    Function &F;
    bool Nvidia;

    Instruction *ifNot0(Instruction *Before, Value *Word, uint32_t Taken, uint32_t NotTaken) {
        IRBuilder<> Here(Before);
        MDNode *Weights = MDBuilder(F.getContext()).createBranchWeights(Taken, NotTaken);
        return SplitBlockAndInsertIfThen(Here.CreateICmpNE(Word, Here.getInt32(0)), Before->getIterator(), false, Weights);
    }

    Value *address(IRBuilder<> &Here, Value *Array, Value *Index) {
        return Here.CreateInBoundsGEP(Here.getInt8Ty(), Array, Index);
    }

    // Without this, an AMD GPU computes the address of an array again for each load from it.
    Value *inRegister(IRBuilder<> &Here, Value *Pointer) {
        auto *Type = FunctionType::get(Pointer->getType(), {Pointer->getType()}, false);
        return Here.CreateCall(InlineAsm::get(Type, "", "=s,0", false), {Pointer});
    }

    Value *loadWord(IRBuilder<> &Here, const Layout::Word &Word, Value *Base) {
        auto LoadBytes = [&](unsigned First, unsigned Bytes, Align Alignment) {
            Value *From = address(Here, Base ? Base : Word.Array, Here.getInt64(Word.First + First));
            Value *Loaded = Here.CreateAlignedLoad(Here.getIntNTy(8 * Bytes), From, Alignment);
            return Here.CreateShl(Here.CreateZExt(Loaded, Here.getInt32Ty()), 8 * First);
        };
        if (isPowerOf2_32(Word.Used) && Nvidia)
            return LoadBytes(Log2_32(Word.Used), 1, Align(1));
        unsigned Number = cast<ArrayType>(Word.Array->getValueType())->getNumElements(), Size = Number - Word.First;
        // NVIDIA GPUs load up to 16 bytes at once if they are aligned.
        Align Needed(Nvidia ? PowerOf2Ceil(std::clamp(Number / 2 + 1, 4u, 16u)) : 4);
        Word.Array->setAlignment(std::max(Word.Array->getAlign().valueOrOne(), Needed));
        // Only complete words can be scalar loads on AMD GPUs. The bytes behind the array are not used.
        if (Size >= 4 || !Nvidia)
            return LoadBytes(0, 4, Align(4));
        Value *Loaded = Size & 2 ? LoadBytes(0, 2, Align(4)) : Here.getInt32(0);
        return Size & 1 ? Here.CreateOr(Loaded, LoadBytes(Size - 1, 1, Align(1))) : Loaded;
    }

    void store(Instruction *Before, const Flag &Of) {
        IRBuilder<> Here(Before);
        Here.CreateStore(Here.getInt8(0), address(Here, Of.Array, Here.getInt64(Of.Index)));
    }

    void store(Instruction *Before, const Layout &In, unsigned First, unsigned End, uint32_t Mask) {
        for (unsigned N = First; N < End; N++)
            for (unsigned I = 0; I < 4; I++)
                if (In.words()[N].Used >> I & 1 && Mask >> (8 * I + N % Layout::WordsPerMask) & 1)
                    store(Before, {In.words()[N].Array, In.words()[N].First + I});
    }

    // The flags of an array of which a mask has the bits: a loop over those that are set. All bits of the mask are the array's if
    // `IsAll`.
    void storeIn(Instruction *Before, const Layout &In, unsigned Word, Value *Fresh, uint32_t Bits, bool IsAll) {
        IRBuilder<> Here(Before);
        const Layout::Word &At = In.words()[Word];
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
        Value *InMask = Here.CreateAnd(Bit, Here.getInt32(Layout::WordsPerMask - 1));
        // 4 * (number of the word in the array) + byte
        Value *Index = Here.CreateAdd(Here.CreateShl(InMask, 2), Here.CreateLShr(Bit, 3));
        Index = Here.CreateAdd(Index, Here.getInt32(At.First - 4 * (Word % Layout::WordsPerMask)));
        Here.CreateStore(Here.getInt8(0), address(Here, At.Array, Here.CreateZExt(Index, Here.getInt64Ty())));
        Value *Next = Here.CreateAnd(Left, Here.CreateSub(Left, Here.getInt32(1)));
        Left->addIncoming(Next, Loop);
        Instruction *Old = Loop->getTerminator();
        IRBuilder<> AtEnd(Old);
        AtEnd.CreateCondBr(AtEnd.CreateICmpNE(Next, AtEnd.getInt32(0)), Loop, After);
        Old->eraseFromParent();
    }
};

class FlagsOf {
public:
    FlagsOf(Function &F, const Callees &Calls) : F(F), Calls(Calls), To(F), Dominators(F), Loops(Dominators) {
        for (Instruction &I : instructions(F))
            if (CallInst *Call = markIn(I))
                if (std::optional<Flag> Of = flagAt(Call->getArgOperand(0), F.getDataLayout())) {
                    Value *Condition = Call->getArgOperand(1);
                    All.push_back({*Of, match(Condition, m_One()) ? nullptr : Condition, Call, Call->getParent()});
                }
    }

    size_t marks() const { return All.size(); }

    void run() {
        if (All.empty())
            return;
        if (Calls.mayEnd(F) || !findWaits())
            writeAllInPlace();
        else
            keep();
        for (Marked &Each : All)
            Each.Call->eraseFromParent();
    }

private:
    Function &F;
    const Callees &Calls;
    Writer To;
    DominatorTree Dominators;
    LoopInfo Loops;
    SmallVector<Marked> All;
    // Loops that may wait, and instructions before which flags are written because the wave may wait there.
    SmallVector<Loop *> Waiting;
    SmallVector<Instruction *> Waits;

    bool isInWaiting(BasicBlock *Block) {
        return any_of(Waiting, [&](Loop *L) { return L->contains(Block); });
    }

    // False if a loop that waits has no block in front of it.
    bool findWaits() {
        SmallVector<Loop *> Left(Loops.begin(), Loops.end());
        while (!Left.empty()) {
            Loop *L = Left.pop_back_val();
            if (!Callees::waits(*L)) {
                append_range(Left, L->getSubLoops());
                continue;
            }
            if (!L->getLoopPreheader() && !InsertPreheaderForLoop(L, &Dominators, &Loops, nullptr, false))
                return false;
            Waiting.push_back(L);
            Waits.push_back(L->getLoopPreheader()->getTerminator());
        }
        for (Instruction &I : instructions(F))
            if (Calls.mayWait(I) && !isInWaiting(I.getParent()))
                Waits.push_back(&I);
        return true;
    }

    // ---- In place: marks between which nothing may end or wait are written together.

    void writeAllInPlace() {
        writeInPlace([](BasicBlock *) { return true; });
    }

    void writeInPlace(function_ref<bool(BasicBlock *)> IsIn) {
        for (auto &Group : groups([&](const Marked &Each) { return IsIn(Each.Call->getParent()); })) {
            SmallVector<Flag> Flags;
            for (const Marked *Each : Group)
                Flags.push_back(Each->Of);
            Layout In(Flags);
            Instruction *Before = Group.back()->Call;
            Masks Seen = valueOf(Before, In, Group, {});
            To.write(Before, In, Seen, To.load(Before, In, Seen));
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
    Masks valueOf(Instruction *Before, const Layout &In, const Group &Of, ArrayRef<Flag> Always) {
        IRBuilder<> Here(Before);
        Masks All;
        for (unsigned N = 0; N < In.masks(); N++) {
            MapVector<uint32_t, SmallVector<Value *>> Conditions;
            for (const Marked *Each : Of)
                if (auto [Mask, Bit] = In.find(Each->Of); Mask == N)
                    Conditions[1u << Bit].push_back(Each->Condition);
            SmallVector<Term> Terms;
            for (auto &[Bit, Each] : Conditions)
                if (is_contained(Each, nullptr))
                    Terms.push_back({nullptr, Bit});
                else if (Each.size() < 3) // one select for each
                    for (Value *Condition : Each)
                        Terms.push_back({Condition, Bit});
                else // of copies of a block, in unrolled loops
                    Terms.push_back({Here.CreateOr(Each), Bit});
            All.push_back(valueOf(Here, Terms, bits(In, Always)[N]));
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
        Value *Condition = Left.front().Condition, *First, *Rest;
        if (match(Condition, m_LogicalAnd(m_Value(First), m_Value(Rest))))
            Condition = First;
        if (match(Condition, m_Not(m_Value(First))))
            Condition = First;
        for (const Term &Each : Left) {
            Value *Outer = Each.Condition;
            Rest = nullptr;
            if (Outer != Condition && match(Outer, m_LogicalAnd(m_Value(First), m_Value(Rest))))
                Outer = First;
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

    static bool areOpposite(Value *A, Value *B) {
        auto *One = dyn_cast<CmpInst>(A), *Other = dyn_cast<CmpInst>(B);
        return match(A, m_Not(m_Specific(B))) || match(B, m_Not(m_Specific(A))) ||
               (One && Other && One->getOperand(0) == Other->getOperand(0) && One->getOperand(1) == Other->getOperand(1) &&
                One->getPredicate() == Other->getInversePredicate());
    }

    // ---- In registers.

    using FlagsAt = MapVector<BasicBlock *, SmallVector<Flag>>;

    void keep() {
        SmallVector<const Marked *> Kept;
        for (Marked &Each : All)
            if (!isInWaiting(Each.Call->getParent()))
                Kept.push_back(&Each);
        SmallVector<Instruction *> Ends;
        for (BasicBlock &Block : F)
            if (isa<ReturnInst>(Block.getTerminator()))
                Ends.push_back(endOf(Block));
        // Nothing is gained for one flag.
        if (Ends.empty() || all_of(Kept, [&](const Marked *Each) { return Each->Of == Kept.front()->Of; })) {
            writeAllInPlace();
            return;
        }

        FlagsAt AtEnd;
        if (Waits.empty()) {
            moveBehindBranches();
            for (const Marked *Each : Kept)
                if (!Each->Condition)
                    AtEnd[Each->At].push_back(Each->Of);
            AtEnd = place(AtEnd);
        }
        // Flags that are set whenever the function is entered.
        SmallVector<Flag> Always = std::exchange(AtEnd[&F.getEntryBlock()], {});
        DenseSet<std::pair<GlobalVariable *, unsigned>> Known;
        for (const Flag &Each : Always)
            Known.insert({Each.Array, Each.Index});
        auto IsKnown = [&](const Flag &Each) { return Known.contains({Each.Array, Each.Index}); };
        for (auto &[Block, Flags] : AtEnd)
            erase_if(Flags, IsKnown);
        AtEnd.remove_if([](auto &Each) { return Each.second.empty(); });
        SmallVector<Group> AtMark = groups([&](const Marked &Each) {
            return (Each.Condition || !Waits.empty()) && !IsKnown(Each.Of) && !isInWaiting(Each.Call->getParent());
        });
        // A kernel is inlined nowhere, so its own flag is only set together with the others.
        SmallVector<Flag> Others;
        if (auto Own = find_if(Always, [&](const Flag &Each) { return isOwn(Each); }); Own != Always.end()) {
            Others = std::exchange(Always, {*Own});
            erase_if(Others, [&](const Flag &Each) { return Each == Always.front(); });
        }

        SmallVector<Flag> Tested = Always;
        for (auto &[Block, Flags] : AtEnd)
            append_range(Tested, Flags);
        for (const Group &Each : AtMark)
            for (const Marked *Mark : Each)
                Tested.push_back(Mark->Of);
        Layout In(Tested);
        if (AtEnd.empty() && AtMark.empty()) {
            Masks Seen = constants(bits(In, Always));
            Instruction *Start = start();
            To.write(Start, In, Seen, To.load(Start, In, Seen), Others);
            return;
        }
        emit(In, bits(In, Always), Others, AtEnd, AtMark, Ends);
        writeInPlace([&](BasicBlock *Block) { return isInWaiting(Block); });
    }

    // A mark that was moved in front of a branch which is still there is one of the block behind the branch again.
    void moveBehindBranches() {
        MapVector<BasicBlock *, SmallVector<std::pair<Marked *, BasicBlock *>>> Moves;
        SmallPtrSet<BasicBlock *, 16> Stay;
        for (Marked &Each : All) {
            auto *Branch = dyn_cast<CondBrInst>(Each.At->getTerminator());
            if (!Branch || !Each.Condition)
                continue;
            bool IsTrue = Each.Condition == Branch->getCondition();
            if (!IsTrue && !areOpposite(Each.Condition, Branch->getCondition()))
                continue;
            BasicBlock *Behind = Branch->getSuccessor(IsTrue ? 0 : 1);
            Moves[Each.At].push_back({&Each, Behind});
            // Half of a select costs as much as all of it. A loop is left once.
            Loop *Inside = Loops.getLoopFor(Each.At);
            if (Behind->getSinglePredecessor() != Each.At && !(Inside && !Inside->contains(Behind)))
                Stay.insert(Each.At);
        }
        for (auto &[Block, Of] : Moves) {
            if (Stay.contains(Block))
                continue;
            DenseMap<BasicBlock *, BasicBlock *> Split;
            for (auto [Each, Behind] : Of) {
                BasicBlock *&To = Split[Behind];
                if (!To)
                    To = Behind->getSinglePredecessor() ? Behind : SplitEdge(Block, Behind, &Dominators, &Loops);
                Each->At = To;
                Each->Condition = nullptr;
            }
        }
    }

    bool isOwn(const Flag &Of) {
        bool IsKernel = F.getCallingConv() == CallingConv::AMDGPU_KERNEL || F.getCallingConv() == CallingConv::PTX_Kernel;
        StringRef Name = Of.Array->getName();
        return IsKernel && Name.consume_front("__profc_") && Name == F.getName();
    }

    // A call that must be a tail call is followed by the return.
    static Instruction *endOf(BasicBlock &Block) {
        CallInst *Tail = Block.getTerminatingMustTailCall();
        return Tail ? cast<Instruction>(Tail) : Block.getTerminator();
    }

    Instruction *start() { return &*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca(); }

    // A constant per mask.
    SmallVector<uint32_t> bits(const Layout &In, ArrayRef<Flag> Flags) {
        SmallVector<uint32_t> Bits(In.masks(), 0);
        for (const Flag &Each : Flags) {
            auto [N, Bit] = In.find(Each);
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

        for (DomTreeNode *Node : post_order(Dominators.getRootNode())) {
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

    void emit(const Layout &In, ArrayRef<uint32_t> Always, ArrayRef<Flag> Others, FlagsAt &AtEnd, ArrayRef<Group> AtMark,
              ArrayRef<Instruction *> Ends) {
        // A scalar load at the start costs an AMD GPU less than one at the end. Registers are not kept over calls.
        auto IsCall = [](Instruction &I) {
            auto *Call = dyn_cast<CallBase>(&I);
            return Call && !isa<IntrinsicInst>(Call) && !Call->isInlineAsm() && !markIn(I);
        };
        bool LoadsFirst = F.getParent()->getTargetTriple().isAMDGCN() && Waits.empty() && none_of(instructions(F), IsCall);
        SmallVector<AllocaInst *> Registers;
        Instruction *Start = start();
        for (Value *Initial : constants(Always)) {
            IRBuilder<> Entry(&F.getEntryBlock(), F.getEntryBlock().begin());
            Registers.push_back(Entry.CreateAlloca(Entry.getInt32Ty(), nullptr, "devprof.seen"));
            IRBuilder<>(Start).CreateStore(Initial, Registers.back());
        }
        auto Load = [&](IRBuilder<> &Here) {
            Masks Seen;
            for (AllocaInst *Each : Registers)
                Seen.push_back(Here.CreateLoad(Here.getInt32Ty(), Each));
            return Seen;
        };
        for (const Group &Each : AtMark) {
            IRBuilder<> Here(Each.back()->Call);
            auto Flags = std::exchange(AtEnd[Each.back()->Call->getParent()], {});
            for (auto [Register, Set] : zip_equal(Registers, valueOf(Each.back()->Call, In, Each, Flags)))
                if (!match(Set, m_Zero()))
                    Here.CreateStore(Here.CreateOr(Here.CreateLoad(Here.getInt32Ty(), Register), Set), Register);
        }
        for (auto &[Block, Flags] : AtEnd) {
            IRBuilder<> Here(endOf(*Block));
            for (auto [Register, Each] : zip_equal(Registers, bits(In, Flags)))
                if (Each)
                    Here.CreateStore(Here.CreateOr(Here.CreateLoad(Here.getInt32Ty(), Register), Each), Register);
        }
        Masks Missing;
        if (LoadsFirst)
            Missing = To.load(Start, In, {});
        auto Write = [&](Instruction *Before) {
            IRBuilder<> Here(Before);
            Masks Seen = Load(Here);
            To.write(Before, In, Seen, LoadsFirst ? Missing : To.load(Before, In, Seen), Others);
        };
        for (Instruction *Each : Waits) {
            Write(Each);
            for (AllocaInst *Register : Registers)
                IRBuilder<>(Each).CreateStore(ConstantInt::get(Register->getAllocatedType(), 0), Register);
        }
        for (Instruction *Each : Ends)
            Write(Each);
        DominatorTree Now(F);
        PromoteMemToReg(Registers, Now);
    }
};

// ---- What is left of marks with an address that is not constant any more: LLVM's store.
void storeAt(CallInst &Call) {
    IRBuilder<> Here(&Call);
    Instruction *Then = SplitBlockAndInsertIfThen(Call.getArgOperand(1), Call.getIterator(), false);
    IRBuilder<>(Then).CreateStore(Here.getInt8(0), Call.getArgOperand(0));
    Call.eraseFromParent();
}

// Marks keep LLVM from unrolling loops as without them, but a large function compiles faster with marks than with masks, and of
// copies of a block in unrolled loops, masks are smaller if they come last.
constexpr unsigned MaxEarly = 64;

struct KeepFlags : PassInfoMixin<KeepFlags> {
    bool IsLast;
    explicit KeepFlags(bool IsLast) : IsLast(IsLast) {}

    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        // IR-level instrumentation is lowered late.
        MarkFlags::mark(M);
        Function *Declared = M.getFunction(Mark);
        if (!Declared)
            return PreservedAnalyses::all();
        Callees Calls(M);
        for (Function &F : M) {
            if (F.isDeclaration())
                continue;
            // LLVM has inferred what functions with marks access.
            addEffects(F);
            for (Instruction &I : instructions(F))
                if (auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(Call))
                    addEffects(*Call);
            FlagsOf Flags(F, Calls);
            if (IsLast || Flags.marks() <= MaxEarly)
                Flags.run();
        }
        if (IsLast) {
            for (User *Each : make_early_inc_range(Declared->users()))
                storeAt(*cast<CallInst>(Each));
            Declared->eraseFromParent();
        }
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }

private:
    // Flags are in other memory than what marks access.
    template <class FunctionOrCall> static void addEffects(FunctionOrCall &Of) {
        MemoryEffects Effects = Of.getMemoryEffects();
        if (isModSet(Effects.getModRef(IRMemLocation::InaccessibleMem)))
            Of.setMemoryEffects(Effects | MemoryEffects(IRMemLocation::Other, ModRefInfo::ModRef));
    }
};

// clang loads the plugin before its front end, too (-fplugin): that turns LLVM's byte coverage on, but not for host code, which
// clang compiles in a process of its own. No option of clang's driver reaches only the compiler of device code: LLVM's options
// (-Xarch_device -mllvm) also reach lld, which does not know this one.
struct TurnOn {
    TurnOn() {
        auto &Options = cl::getRegisteredOptions();
        auto Found = Options.find("enable-single-byte-coverage");
        if (Found != Options.end() && !compilesHost())
            static_cast<cl::opt<bool> *>(Found->second)->setValue(true);
    }

private:
    // Whether this is a process for one compilation (clang -cc1), of host code.
    static bool compilesHost() {
        auto Command = MemoryBuffer::getFileAsStream("/proc/self/cmdline");
        if (!Command)
            return false;
        SmallVector<StringRef, 256> Arguments;
        (*Command)->getBuffer().split(Arguments, '\0');
        return is_contained(Arguments, "-cc1") && !is_contained(Arguments, "-fcuda-is-device") &&
               !is_contained(Arguments, "-fopenmp-is-target-device");
    }
} const IsOn;

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-coverage", "1", [](PassBuilder &Builder) {
                // After clang's instrumentation is lowered (at the start of the pipeline), before inlining.
                Builder.registerPipelineEarlySimplificationEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(MarkFlags()); });
                Builder.registerPeepholeEPCallback(
                    [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(MoveMarks()); });
                // After functions are inlined. Loops are unrolled between the two.
                Builder.registerOptimizerEarlyEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(KeepFlags(false)); });
                Builder.registerOptimizerLastEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(KeepFlags(true)); });
            }};
}
