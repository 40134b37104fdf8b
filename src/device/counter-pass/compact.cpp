// A pass plugin for clang (-fpass-plugin=) that makes device code with profile counters smaller, so that it compiles in about the
// time of code without counters. README.md says what it does, and why the counts stay the same.
#include "updates.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MD5.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <deque>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

// Functions of devprof's device runtime: of src/device/device-rt/profile.c, and of cuda.h.
constexpr StringLiteral Taken = "__devprof_instrument_taken";
constexpr StringLiteral AddList = "__devprof_instrument_list";

// (counter, uniform counter, step, condition): an update by the lanes for which the condition is true, on AMD GPUs, while LLVM inlines
// and simplifies. No such function exists. The condition is an argument of its own, because LLVM would change a step that depends on it
// beyond recognition. coverage.cpp knows functions of such names.
constexpr StringLiteral Conditional = "__devprof_instrument_conditional";

// Updates that will be in lists of cuda.h. No such function exists.
constexpr StringLiteral Listed = "__devprof_listed_update";

// The updates that are inlined into a function. If it has more, all of them are in lists.
constexpr size_t MaxInlined = 6;

// The update with a known step that the instruction is, or null.
CallInst *constantUpdate(Instruction &I) {
    CallInst *Call = updateBy(Update, I);
    return Call && isa<ConstantInt>(Call->getArgOperand(2)) ? Call : nullptr;
}

// The update with a condition that the instruction is, or null.
CallInst *conditionalUpdate(Instruction &I) { return callOf(Conditional, I); }

// Any update that the plugin knows, or null.
CallInst *updateOf(Instruction &I) {
    if (CallInst *Call = conditionalUpdate(I))
        return Call;
    if (CallInst *Call = updateBy(Listed, I))
        return Call;
    return constantUpdate(I);
}

// Whether the function can have updates that the plugin knows.
bool mayHaveUpdates(const Function &F) {
    const Module &M = *F.getParent();
    bool Are = M.getTargetTriple().isAMDGCN() ? M.getFunction(Update) || M.getFunction(Conditional) : M.getFunction(Listed) != nullptr;
    return Are && !F.isDeclaration() && !hasConvergenceTokens(F);
}

// Calls a function of that name.
CallInst *callWith(IRBuilder<> &Here, StringRef Name, ArrayRef<Value *> Arguments, bool AreVariable = false) {
    SmallVector<Type *> Types;
    if (!AreVariable)
        append_range(Types, map_range(Arguments, [](Value *Each) { return Each->getType(); }));
    Module &M = *Here.GetInsertBlock()->getModule();
    return Here.CreateCall(M.getOrInsertFunction(Name, FunctionType::get(Here.getVoidTy(), Types, AreVariable)), Arguments);
}

// Each function writes its wave size into its record (OffloadDeviceWaveSize), also where it is inlined. If that is a constant,
// it becomes the record's initial value.
bool initializeWaveSize(StoreInst &Store, const DataLayout &Layout) {
    APInt At(64, 0);
    Value *Pointer = Store.getPointerOperand()->stripAndAccumulateConstantOffsets(Layout, At, false);
    auto *Record = dyn_cast<GlobalVariable>(Pointer);
    auto *Size = dyn_cast<ConstantInt>(Store.getValueOperand());
    if (!Record || !Size || !Record->getName().starts_with("__profd_") || !Record->hasInitializer())
        return false;
    auto *Fields = dyn_cast<ConstantStruct>(Record->getInitializer());
    if (!Fields)
        return false;
    const StructLayout *Offsets = Layout.getStructLayout(Fields->getType());
    unsigned N = Offsets->getElementContainingOffset(At.getZExtValue());
    Constant *Old = Fields->getOperand(N);
    if (Offsets->getElementOffset(N) != At.getZExtValue() || Old->getType() != Size->getType() ||
        (!Old->isNullValue() && Old != Size))
        return false;
    SmallVector<Constant *> New;
    for (Use &Field : Fields->operands())
        New.push_back(cast<Constant>(Field));
    New[N] = Size;
    Record->setInitializer(ConstantStruct::get(Fields->getType(), New));
    Store.eraseFromParent();
    return true;
}

// Whether LLVM takes updates for one instruction when it decides what to unroll, so that arrays that loops index are in registers. Not on
// gfx9, where rocPRIM's device_reduce would take 1.7 times the time to compile instead of 1.5.
bool areLight(const Function &F) { return !F.getFnAttribute("target-cpu").getValueAsString().starts_with("gfx9"); }

// Replaces an update by one with a condition. If it is light, its arguments are variable: LLVM takes each parameter for an instruction.
void replace(CallInst &Call, Value *Condition) {
    IRBuilder<> Here(&Call);
    SmallVector<Value *> Arguments(make_range(Call.arg_begin(), Call.arg_begin() + 3));
    Arguments.push_back(Condition);
    CallInst *New = callWith(Here, Conditional, Arguments, areLight(*Call.getFunction()));
    if (!match(Condition, m_One()))
        New->setConvergent();
    Call.eraseFromParent();
}

// For updates in the blocks of a branch, which otherwise keep LLVM from making a select of it.
struct MoveUpdates : PassInfoMixin<MoveUpdates> {
    PreservedAnalyses run(Function &F, FunctionAnalysisManager &Analyses) {
        if (!F.getParent()->getTargetTriple().isAMDGCN() || !mayHaveUpdates(F))
            return PreservedAnalyses::all();
        auto IsUpdate = [](Instruction &I) { return updateOf(I) != nullptr; };
        // Only lanes that take the branch count.
        auto SetCondition = [](Instruction &I, Value *Goes) {
            CallInst *Call = conditionalUpdate(I);
            Value *Known = Call ? Call->getArgOperand(3) : nullptr;
            if (Known && !match(Known, m_One()))
                Goes = IRBuilder<>(Call).CreateLogicalAnd(Goes, Known);
            replace(*updateOf(I), Goes);
        };
        bool Changed = false;
        for (Instruction &I : make_early_inc_range(instructions(F))) {
            // A block with a store cannot be moved.
            if (auto *Store = dyn_cast<StoreInst>(&I)) {
                Changed |= initializeWaveSize(*Store, F.getDataLayout());
            } else if (CallInst *Call = areLight(F) ? constantUpdate(I) : nullptr) {
                replace(*Call, ConstantInt::getTrue(F.getContext()));
                Changed = true;
            }
        }
        Changed |= moveBeforeBranches(F, Analyses, IsUpdate, SetCondition);
        return Changed ? analysesOfBlocks() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }
};

// A counter and its uniform counter, or null.
using Counter = std::pair<Constant *, Constant *>;

// Which lanes update: all active ones, or those for which a condition is true or false.
struct Lanes {
    Value *Condition; // null: all
    bool Is;
};

struct Entry {
    Counter To;
    uint64_t Step;
    Lanes By;
};

// Updates that are made together, in front of an instruction.
struct List {
    Instruction *Before;
    SmallVector<Entry> Entries;
};

// Which conditions updates have.
SmallVector<Value *> conditions(ArrayRef<Entry> Entries) {
    SetVector<Value *> All;
    for (const Entry &E : Entries)
        if (E.By.Condition)
            All.insert(E.By.Condition);
    return All.takeVector();
}

// One entry for each counter and lanes, with the sum of the steps.
SmallVector<Entry> summed(ArrayRef<Entry> Entries) {
    MapVector<std::tuple<Counter, Value *, unsigned>, uint64_t> Steps;
    for (const Entry &E : Entries)
        Steps[{E.To, E.By.Condition, E.By.Is}] += E.Step;
    SmallVector<Entry> Sums;
    for (auto &[Key, Step] : Steps)
        if (Step > 0)
            Sums.push_back({std::get<0>(Key), Step, {std::get<1>(Key), std::get<2>(Key) != 0}});
    return Sums;
}

Lanes lanes(Value *Condition, bool Is) {
    Value *Opposite;
    return match(Condition, m_Not(m_Value(Opposite))) ? Lanes{Opposite, !Is} : Lanes{Condition, Is};
}

// A counter that a list can name. On AMD GPUs, the list may be another file's, so the name is the same in the complete program.
bool isNamed(Value *Pointer) {
    Value *Base = Pointer->stripInBoundsOffsets();
    auto *Variable = dyn_cast<GlobalVariable>(Base);
    return isa<ConstantPointerNull>(Base) ||
           (Variable && (!Variable->hasLocalLinkage() || Variable->getParent()->getTargetTriple().isNVPTX()));
}

// The instruction as an entry of a list.
std::optional<Entry> entryOf(Instruction &I) {
    CallInst *Call = updateOf(I);
    if (!Call || !isNamed(Call->getArgOperand(0)) || !isNamed(Call->getArgOperand(1)))
        return {};
    Counter To = {cast<Constant>(Call->getArgOperand(0)), cast<Constant>(Call->getArgOperand(1))};
    const APInt *Step;
    if (!match(Call->getArgOperand(2), m_APInt(Step)))
        return {};
    if (!conditionalUpdate(I) || match(Call->getArgOperand(3), m_One()))
        return Entry{To, Step->getZExtValue(), {nullptr, true}};
    return Entry{To, Step->getZExtValue(), lanes(Call->getArgOperand(3), true)};
}

// Whether the wave goes on after the instruction.
bool goesOn(Instruction &I) {
    return updateOf(I) || I.isTerminator() || isGuaranteedToTransferExecutionToSuccessor(&I);
}

// The updates of a function. Each block has one list at its end, or, if the wave may not reach the end, lists of what the wave
// executes together.
class Updates {
public:
    Updates(Function &F, FunctionAnalysisManager &Analyses) : F(F), Analyses(Analyses) {
        for (BasicBlock &Block : F)
            collect(Block);
    }

    bool areNone() const { return Replaced.empty(); }

    // How many updates are left if those of a counter in a list are one.
    size_t number() const {
        size_t Sum = 0;
        for (const List &Each : Lists)
            Sum += summed(Each.Entries).size();
        return Sum;
    }

    // Updates that the same lanes make equally often are made by the first of the blocks.
    void mergeEquivalent() {
        auto &Dominators = Analyses.getResult<DominatorTreeAnalysis>(F);
        for (DomTreeNode *Node : depth_first(Dominators.getRootNode())) {
            List *From = atEnd(Node->getBlock());
            unsigned Steps = 0;
            for (DomTreeNode *Up = Node->getIDom(); From && Up && ++Steps < MaxBetween; Up = Up->getIDom()) {
                List *To = atEnd(Up->getBlock());
                if (!To || To->Entries.empty() || !areEquivalent(*Up->getBlock(), *Node->getBlock(), true))
                    continue;
                auto Own = [](Entry &E) { return !E.By.Condition; };
                append_range(To->Entries, make_filter_range(From->Entries, Own));
                erase_if(From->Entries, Own);
                break;
            }
        }
    }

    // Updates of a block behind a branch are made in front of the branch, unless that block has conditional updates itself. From
    // the ends of the branches up: each other level of branches makes the updates of two.
    void moveBeforeBranches() {
        auto &Dominators = Analyses.getResult<DominatorTreeAnalysis>(F);
        auto &Loops = Analyses.getResult<LoopAnalysis>(F);
        for (DomTreeNode *Node : post_order(Dominators.getRootNode())) {
            BasicBlock *Block = Node->getBlock(), *Before = Block->getSinglePredecessor();
            auto *Branch = Before ? dyn_cast<CondBrInst>(Before->getTerminator()) : nullptr;
            List *From = atEnd(Block), *To = Before ? atEnd(Before) : nullptr;
            if (!Branch || !From || !To || Loops.getLoopFor(Block) != Loops.getLoopFor(Before) ||
                any_of(From->Entries, [](Entry &E) { return E.By.Condition; }))
                continue;
            Lanes By = lanes(Branch->getCondition(), Branch->getSuccessor(0) == Block);
            for (Entry &E : From->Entries)
                To->Entries.push_back({E.To, E.Step, By});
            From->Entries.clear();
        }
    }

    // Conditional updates that the same lanes make one after another are made by the last of the blocks, which knows all conditions.
    // They must not wait for a loop.
    void mergeConditional() {
        auto &Dominators = Analyses.getResult<DominatorTreeAnalysis>(F);
        for (DomTreeNode *Node : depth_first(Dominators.getRootNode())) {
            List *To = atEnd(Node->getBlock());
            unsigned Steps = 0;
            for (DomTreeNode *Up = Node->getIDom(); To && Up && ++Steps < MaxBetween; Up = Up->getIDom()) {
                List *From = atEnd(Up->getBlock());
                if (!From || conditions(From->Entries).empty() || !areEquivalent(*Up->getBlock(), *Node->getBlock(), false))
                    continue;
                if (size_t Own = conditions(To->Entries).size(); Own > 0 && Own + conditions(From->Entries).size() <= MaxConditions) {
                    auto Conditional = [](Entry &E) { return E.By.Condition != nullptr; };
                    append_range(To->Entries, make_filter_range(From->Entries, Conditional));
                    erase_if(From->Entries, Conditional);
                }
                break;
            }
        }
    }

    // Removes all updates, and returns the lists that replace them.
    std::deque<List> take() {
        for (CallInst *Call : Replaced)
            Call->eraseFromParent();
        return std::move(Lists);
    }

private:
    static constexpr unsigned MaxBetween = 64;
    // Each occupies one or two scalar registers until the call.
    static constexpr size_t MaxConditions = 15;
    Function &F;
    FunctionAnalysisManager &Analyses;
    std::deque<List> Lists;
    DenseMap<BasicBlock *, List *> AtEnd;
    SmallVector<CallInst *> Replaced;

    // The list at the end of the block. Null if the wave may not reach it.
    List *atEnd(BasicBlock *Block) { return AtEnd.lookup(Block); }

    void collect(BasicBlock &Block) {
        bool ReachesEnd = all_of(Block, goesOn);
        List *Open = nullptr;
        auto Add = [&] { Open = &Lists.emplace_back(List{Block.getTerminator(), {}}); };
        if (ReachesEnd) {
            Add();
            AtEnd[&Block] = Open;
        }
        for (Instruction &I : Block) {
            if (std::optional<Entry> Found = entryOf(I)) {
                if (!Open)
                    Add();
                Open->Entries.push_back(*Found);
                Replaced.push_back(cast<CallInst>(&I));
            } else if (Open && !goesOn(I)) {
                Open->Before = &I;
                Open = nullptr;
            }
        }
    }

    // `MayLoop`: also if there is a loop between the blocks.
    bool areEquivalent(BasicBlock &Before, BasicBlock &After, bool MayLoop) {
        auto &Loops = Analyses.getResult<LoopAnalysis>(F);
        Loop *In = Loops.getLoopFor(&Before);
        if (In != Loops.getLoopFor(&After) ||
            !Analyses.getResult<PostDominatorTreeAnalysis>(F).dominates(&After, &Before))
            return false;
        SmallPtrSet<BasicBlock *, 16> Between = {&Before, &After};
        SmallVector<BasicBlock *> Left(successors(&Before));
        while (!Left.empty()) {
            BasicBlock *Block = Left.pop_back_val();
            if (!Between.insert(Block).second)
                continue;
            if (!atEnd(Block) || Between.size() > MaxBetween || (!MayLoop && Loops.getLoopFor(Block) != In))
                return false;
            append_range(Left, successors(Block));
        }
        return true;
    }
};

// An update that the compiler inlines. Lanes that do not count add 0.
void insertInlined(IRBuilder<> &Here, Value *To, Value *Uniform, Value *Step, Lanes By) {
    Value *None = Here.getInt64(0);
    if (By.Condition)
        Step = Here.CreateSelect(By.Condition, By.Is ? Step : None, By.Is ? None : Step);
    callWith(Here, By.Condition ? Taken : Update, {To, Uniform, Step})->setConvergent();
}

// The code of a function that calls the routines of src/device/device-rt/lists.s.
class Calls {
public:
    // What the linker must keep is added to `Used`.
    Calls(Function &F, SmallVectorImpl<GlobalValue *> &Used)
        : M(*F.getParent()), Used(Used), Word(Type::getInt32Ty(M.getContext())), Long(Type::getInt64Ty(M.getContext())) {
        IRBuilder<> Here(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        // From gfx10 on, waves have 32 lanes by default.
        StringRef Features = F.getFnAttribute("target-features").getValueAsString();
        bool IsDefault = F.getFnAttribute("target-cpu").getValueAsString().starts_with("gfx1");
        WaveSize = !Features.contains("+wavefrontsize64") && (IsDefault || Features.contains("+wavefrontsize32")) ? 32 : 64;
        // The file with the routines, see lists.c.
        Used.push_back(function("__devprof_lists"));
        Value *Wave = Here.CreateIntrinsic(Intrinsic::amdgcn_wavefrontsize, {});
        Value *Routine = Here.CreateSelect(Here.CreateICmpEQ(Wave, Here.getInt32(64)), function("__devprof_count_masks64"),
                                           function("__devprof_count_masks32"));
        // The same in all lanes. The compiler knows that once the functions are inlined.
        auto InAllLanes = [&](const char *Name, IntegerType *Result) {
            Value *Each = Here.CreateCall(M.getOrInsertFunction(Name, Result));
            return Here.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane, {Result}, {Each});
        };
        Value *Offset = InAllLanes("__devprof_copy_offset", Long);
        Value *Full = InAllLanes("__devprof_copy_full", Word);
        Value *Inputs = PoisonValue::get(FixedVectorType::get(Word, 5));
        Value *Words[] = {Here.CreatePtrToInt(Routine, Long), Offset, Full};
        unsigned N = 0;
        for (Value *Each : Words)
            for (unsigned Shift = 0; Shift < Each->getType()->getIntegerBitWidth(); Shift += 32)
                Inputs = Here.CreateInsertElement(Inputs, Here.CreateTrunc(Here.CreateLShr(Each, Shift), Word), N++);
        // Without this, the compiler would compute them again for each call.
        auto *Type = FunctionType::get(Inputs->getType(), {Inputs->getType()}, false);
        Context = Here.CreateCall(InlineAsm::get(Type, "", "=s,0", false), {Inputs});
    }

    // A call for each group of conditions; the first one is also for updates by all lanes. They are few statements, because LLVM looks
    // at all registers of each.
    void insert(List &Updates) {
        SmallVector<Entry> Entries = summed(Updates.Entries);
        SmallVector<Value *> Conditions = conditions(Entries);
        IRBuilder<> Here(Updates.Before);
        std::string Text, Inputs;
        SmallVector<Value *> Values = {Context};
        auto Flush = [&] {
            if (!Text.empty())
                call(Here, Text, Inputs, Values);
            Text.clear();
            Inputs.clear();
            Values.resize(1);
        };
        for (size_t N = 0; N == 0 || N < Conditions.size(); N += MasksOfCall) {
            ArrayRef<Value *> Group = ArrayRef(Conditions).drop_front(N).take_front(MasksOfCall);
            GlobalVariable *Variable = list(Entries, Group, N == 0);
            if (!Variable)
                continue;
            if (Values.size() + Group.size() > MaxMasks + 1)
                Flush();
            for (size_t At = 0; At < Group.size(); At++) {
                // In a wave of 32 lanes, the mask is one register.
                size_t First = 46 + 2 * At;
                Text += WaveSize == 32 ? formatv("s_mov_b32 s{0}, ${1}\n", First, Values.size()).str()
                                       : formatv("s_mov_b64 s[{0}:{1}], ${2}\n", First, First + 1, Values.size()).str();
                Inputs += ",s";
                Values.push_back(mask(Here, Group[At]));
            }
            Text += ("s_mov_b32 s58, " + Variable->getName() + "@rel32@lo-8\ns_swappc_b64 s[56:57], s[40:41]\n").str();
        }
        Flush();
    }

private:
    Module &M;
    SmallVectorImpl<GlobalValue *> &Used;
    IntegerType *Word, *Long;
    unsigned WaveSize; // 32 only if that is known
    Value *Context;    // s[40:44]

    // The masks of one call, in s[46:55].
    static constexpr size_t MasksOfCall = 5;

    // LLVM can spill everything around a statement, but not its masks, which are in registers at the same time: 15 of 64 lanes are in
    // 30 of 102 registers, of which `call` needs 31.
    static constexpr size_t MaxMasks = 15;

    Function *function(StringRef Name) {
        auto *F = cast<Function>(M.getOrInsertFunction(Name, Type::getVoidTy(M.getContext())).getCallee());
        F->setVisibility(GlobalValue::HiddenVisibility);
        return F;
    }

    void call(IRBuilder<> &Here, StringRef Text, StringRef Inputs, ArrayRef<Value *> Values) {
        std::string Registers = ("{s[40:44]}" + Inputs).str();
        // Pairs, because LLVM looks at each register of a register range for each of its parts.
        for (int First : {46, 48, 50, 52, 54, 56, 58, 60, 62, 72, 74, 76, 78})
            if (First >= 56 || !Inputs.empty())
                Registers += formatv(",~{{s[{0}:{1}]}", First, First + 1);
        Registers += ",~{v0},~{v1},~{v2}";
        SmallVector<Type *> Types(map_range(Values, [](Value *Each) { return Each->getType(); }));
        auto *Type = FunctionType::get(Here.getVoidTy(), Types, false);
        CallInst *Call = Here.CreateCall(InlineAsm::get(Type, Text, Registers, true), Values);
        Call->setConvergent();
        Call->setDoesNotThrow();
        Call->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
    }

    // A counter as a variable of the module, or null, and an offset.
    std::pair<Value *, uint64_t> variable(Constant *Pointer) {
        APInt Distance(64, 0);
        Value *Base = Pointer->stripAndAccumulateConstantOffsets(M.getDataLayout(), Distance, false);
        return {Base, Distance.getZExtValue()};
    }

    // The address of a counter. Null if there is no counter.
    Constant *address(Constant *Pointer) {
        auto [Base, Distance] = variable(Pointer);
        if (isa<ConstantPointerNull>(Base))
            return nullptr;
        Constant *Start = ConstantExpr::getPtrToInt(cast<GlobalVariable>(Base), Long);
        return ConstantExpr::getAdd(Start, ConstantInt::get(Long, Distance));
    }

    // The mask of the active lanes for which the condition is true. LLVM makes one instruction of it for a comparison in the same block,
    // and two for any other condition, so the mask of "a and b" is made of the masks of a and b.
    Value *mask(IRBuilder<> &Here, Value *Condition) {
        Type *Mask = Here.getIntNTy(WaveSize);
        auto Ballot = [&](Value *Of) { return Here.CreateIntrinsic(Intrinsic::amdgcn_ballot, {Mask}, {Of}); };
        Value *A, *B;
        if (!isOfCompares(Condition, Here.GetInsertBlock()))
            return Ballot(Condition);
        if (match(Condition, m_Not(m_Value(A))))
            return Here.CreateAnd(Here.CreateNot(mask(Here, A)), Ballot(Here.getTrue()));
        if (match(Condition, m_LogicalAnd(m_Value(A), m_Value(B))))
            return Here.CreateAnd(mask(Here, A), mask(Here, B));
        if (match(Condition, m_LogicalOr(m_Value(A), m_Value(B))))
            return Here.CreateOr(mask(Here, A), mask(Here, B));
        return Ballot(Condition);
    }

    // Whether the condition consists of few comparisons in the block.
    static bool isOfCompares(Value *Condition, BasicBlock *Block, unsigned Depth = 0) {
        auto *I = dyn_cast<Instruction>(Condition);
        Value *A, *B;
        if (!I || I->getParent() != Block || Depth > 3)
            return false;
        if (match(I, m_Not(m_Value(A))))
            return isOfCompares(A, Block, Depth + 1);
        if (match(I, m_LogicalAnd(m_Value(A), m_Value(B))) || match(I, m_LogicalOr(m_Value(A), m_Value(B))))
            return isOfCompares(A, Block, Depth + 1) && isOfCompares(B, Block, Depth + 1);
        return isa<CmpInst>(I);
    }

    // The variable with a list, or null if nothing is added: for the conditions of a call, and, with `AllLanes`, for updates by all
    // lanes. Equal lists of all modules are one.
    GlobalVariable *list(ArrayRef<Entry> Entries, ArrayRef<Value *> Conditions, bool AllLanes) {
        constexpr uint64_t Inside = 2, Outside = 4, Next = 6;
        struct Parts {
            Counter To;
            uint64_t Bits, Step;
        };
        SmallVector<Parts> All;
        auto Add = [&](Value *Condition, bool Is, uint64_t Bits) {
            for (const Entry &E : Entries)
                if (E.By.Condition == Condition && E.By.Is == Is)
                    for (uint64_t Left = E.Step; Left > 0; Left -= All.back().Step)
                        All.push_back({E.To, Bits, std::min<uint64_t>(Left, 7)});
        };
        if (AllLanes)
            Add(nullptr, true, 0);
        for (Value *Condition : Conditions) {
            size_t Begin = All.size();
            Add(Condition, true, Inside);
            size_t End = All.size();
            Add(Condition, false, Outside);
            if (Condition == Conditions.front())
                continue;
            if (Begin == End)
                All.insert(All.begin() + Begin, {All[Begin].To, Next, 0});
            All[Begin].Bits = Next;
        }
        if (All.empty())
            return nullptr;
        All.back().Bits |= 1;

        std::string Content;
        raw_string_ostream Out(Content);
        for (Parts &Each : All) {
            auto [Base, Distance] = variable(Each.To.first);
            Out << Base->getName() << ' ' << Distance << ' ' << Each.Bits << ' ' << Each.Step << '\n';
        }
        std::string Name = ("__devprof_list_" + MD5::hash(arrayRefFromStringRef(Content)).digest()).str();
        if (GlobalVariable *Known = M.getNamedGlobal(Name))
            return Known;
        auto *Type = ArrayType::get(Word, 2 * All.size());
        auto *List = new GlobalVariable(M, Type, true, GlobalValue::LinkOnceODRLinkage, nullptr, Name, nullptr,
                                        GlobalValue::NotThreadLocal, 4);
        List->setVisibility(GlobalValue::HiddenVisibility);
        List->setComdat(M.getOrInsertComdat(Name));
        List->setAlignment(Align(8));
        SmallVector<Constant *> Words;
        for (Parts &Each : All) {
            Constant *Start = ConstantExpr::getPtrToInt(List, Long);
            Constant *Here = ConstantExpr::getAdd(Start, ConstantInt::get(Long, 4 * Words.size()));
            auto Distance = [&](Constant *Pointer, uint64_t Bits) {
                Constant *To = address(Pointer);
                Constant *From = To ? ConstantExpr::getSub(To, Here) : ConstantInt::get(Long, 0);
                return ConstantExpr::getTrunc(ConstantExpr::getAdd(From, ConstantInt::get(Long, Bits)), Word);
            };
            Words.append({Distance(Each.To.first, Each.Bits), Distance(Each.To.second, Each.Step)});
        }
        List->setInitializer(ConstantArray::get(Type, Words));
        // Only assembly code names it.
        Used.push_back(List);
        return List;
    }
};

// The routines need loads and atomic operations of gfx9.
bool hasRoutines(const Function &F) {
    StringRef Gpu = F.getFnAttribute("target-cpu").getValueAsString();
    return !(Gpu.size() == 6 && Gpu.starts_with("gfx") && Gpu[3] < '9');
}

// The calls of cuda.h's routine. A list is an array of counters, uniform counters and steps.
class CudaCalls {
public:
    explicit CudaCalls(Module &M) : M(M) {}

    void insert(List &Updates) {
        SmallVector<Constant *> Rows;
        IRBuilder<> Here(Updates.Before);
        for (Entry &E : summed(Updates.Entries))
            Rows.push_back(ConstantStruct::getAnon({E.To.first, E.To.second, Here.getInt64(E.Step)}));
        if (Rows.empty())
            return;
        Constant *Content = ConstantArray::get(ArrayType::get(Rows.front()->getType(), Rows.size()), Rows);
        GlobalVariable *&List = Known[Content];
        if (!List)
            List = new GlobalVariable(M, Content->getType(), true, GlobalValue::InternalLinkage, Content, "__devprof_list", nullptr,
                                      GlobalValue::NotThreadLocal, 1);
        Function *Callee = M.getFunction(AddList);
        Type *Pointer = Callee->getArg(0)->getType();
        CallInst *Call = Here.CreateCall(Callee, {ConstantExpr::getAddrSpaceCast(List, Pointer), Here.getInt32(Rows.size())});
        Call->setConvergent();
        // Calls in functions with debug information need a location.
        DISubprogram *Subprogram = Updates.Before->getFunction()->getSubprogram();
        if (Subprogram && !Call->getDebugLoc())
            Call->setDebugLoc(DILocation::get(M.getContext(), 0, 0, Subprogram));
    }

private:
    Module &M;
    DenseMap<Constant *, GlobalVariable *> Known;
};

struct CombineUpdates : PassInfoMixin<CombineUpdates> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &Manager) {
        bool Changed = hideCounters(M);
        auto &Analyses = Manager.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
        bool IsCuda = M.getTargetTriple().isNVPTX();
        CudaCalls Cuda(M);
        SmallVector<GlobalValue *> Used;
        for (Function &F : M) {
            if (!mayHaveUpdates(F))
                continue;
            Updates Of(F, Analyses);
            if (Of.areNone())
                continue;
            Changed = true;
            Of.mergeEquivalent();
            if (IsCuda || Of.number() <= MaxInlined || !hasRoutines(F)) {
                for (List &Each : Of.take()) {
                    IRBuilder<> Here(Each.Before);
                    if (IsCuda)
                        Cuda.insert(Each);
                    else
                        for (Entry &E : summed(Each.Entries))
                            insertInlined(Here, E.To.first, E.To.second, Here.getInt64(E.Step), E.By);
                }
                continue;
            }
            Of.moveBeforeBranches();
            Of.mergeConditional();
            std::deque<List> Lists = Of.take();
            Calls To(F, Used);
            for (List &Each : Lists)
                To.insert(Each);
        }
        if (Function *Marker = M.getFunction(Conditional)) {
            // Of counters that lists cannot name.
            for (User *Each : make_early_inc_range(Marker->users())) {
                auto *Call = cast<CallInst>(Each);
                IRBuilder<> Here(Call);
                Value *Condition = Call->getArgOperand(3);
                insertInlined(Here, Call->getArgOperand(0), Call->getArgOperand(1), Call->getArgOperand(2),
                              {match(Condition, m_One()) ? nullptr : Condition, true});
                Call->eraseFromParent();
            }
            Marker->eraseFromParent();
            Changed = true;
        }
        if (Function *Marker = M.getFunction(Listed)) {
            // In a function without an end, for example.
            for (User *Each : make_early_inc_range(Marker->users()))
                cast<CallInst>(Each)->setCalledFunction(M.getFunction(Update));
            Marker->eraseFromParent();
            Changed = true;
        }
        // All at once, because each time takes as long as there are functions and lists.
        if (!Used.empty())
            appendToCompilerUsed(M, Used);
        return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; }
};

// Before functions are inlined.
class MarkLarge : public PassInfoMixin<MarkLarge> {
public:
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        Function *Inlined = M.getFunction(Update);
        if (!Inlined || !M.getTargetTriple().isNVPTX() || !M.getFunction(AddList) || !markLarge(M, *Inlined))
            return PreservedAnalyses::all();
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }

private:
    // On NVIDIA GPUs, the device runtime is in the module. Updates of large kernels, and of the functions that these call, will be in
    // lists. All others are inlined.
    static bool markLarge(Module &M, Function &Inlined) {
        DenseMap<const Function *, size_t> Known;
        SetVector<Function *> Large;
        for (Function &F : M)
            if (F.getCallingConv() == CallingConv::PTX_Kernel && updates(F, Known) > MaxInlinedInKernel)
                Large.insert(&F);
        if (Large.empty())
            return false;
        auto *Marker = cast<Function>(M.getOrInsertFunction(Listed, Inlined.getFunctionType()).getCallee());
        Marker->setConvergent();
        Marker->setMemoryEffects(MemoryEffects::inaccessibleOrArgMemOnly());
        Marker->setDoesNotThrow();
        Marker->setWillReturn();
        for (size_t N = 0; N < Large.size(); N++)
            for (Instruction &I : instructions(*Large[N])) {
                auto *Call = dyn_cast<CallBase>(&I);
                Function *Callee = Call ? Call->getCalledFunction() : nullptr;
                if (constantUpdate(I))
                    Call->setCalledFunction(Marker);
                else if (Callee && Callee != &Inlined && !Callee->isDeclaration())
                    Large.insert(Callee);
            }
        return true;
    }

    // A kernel has more only if it is made of templates. Those of tools/bench/cuda have up to 13.
    static constexpr size_t MaxInlinedInKernel = 40;

    // How many updates a function has with those of the functions that it calls.
    static size_t updates(const Function &F, DenseMap<const Function *, size_t> &Known) {
        auto [At, IsNew] = Known.insert({&F, 0});
        if (!IsNew)
            return At->second;
        size_t Sum = 0;
        for (const Instruction &I : instructions(F)) {
            auto *Call = dyn_cast<CallBase>(&I);
            const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
            if (Callee)
                Sum += Callee->getName() == Update ? 1 : updates(*Callee, Known);
            if (Sum > MaxInlinedInKernel)
                break;
        }
        return Known[&F] = Sum;
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "devprof-compact", "1", [](PassBuilder &Builder) {
                // Before anything is inlined.
                Builder.registerPipelineEarlySimplificationEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(MarkLarge()); });
                // Often, so that each function has its final shape before it is inlined into others.
                Builder.registerPeepholeEPCallback(
                    [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(MoveUpdates()); });
                // After functions are inlined and loops unrolled.
                Builder.registerOptimizerLastEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel, ThinOrFullLTOPhase) { Passes.addPass(CombineUpdates()); });
            }};
}
