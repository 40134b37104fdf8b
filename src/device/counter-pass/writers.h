// How the flags of a function get into memory.
#pragma once
#include "marks.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <memory>
#include <vector>

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

using Masks = SmallVector<Value *>;

// For some flags, others that are set whenever they are. They have no bit in the masks.
using SetTogether = DenseMap<Flag, SmallVector<Flag>>;

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

} // namespace
