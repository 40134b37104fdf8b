// Conditions of marks: those of copies of a block are joined, and flags that others imply are found by the cases that they make.
#pragma once
#include "marks.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include <optional>

namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

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

} // namespace
