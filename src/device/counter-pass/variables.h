// Joins the variables of device functions, when coverage.cpp has nothing left to do with the functions.
#pragma once
#include "updates.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace {

using namespace llvm;

// Makes one variable of all hidden records, counters and mappings in a section. Nobody looks for them by name, and a file of templates has
// thousands, which take time in the link. If several files are linked, they share these variables, so they must not be joined.
void joinVariables(Module &M) {
    MapVector<std::pair<StringRef, unsigned>, SmallVector<GlobalVariable *>> Sections; // by name and address space
    for (GlobalVariable &Each : M.globals()) {
        StringRef Name = Each.getName();
        bool IsOurs = consumeCounterPrefix(Name) || Name.starts_with("__covrec_");
        if (IsOurs && Each.hasSection() && Each.hasHiddenVisibility() && Each.hasDefinitiveInitializer())
            Sections[{Each.getSection(), Each.getAddressSpace()}].push_back(&Each);
    }
    const DataLayout &Layout = M.getDataLayout();
    LLVMContext &Context = M.getContext();
    for (auto &[Section, Variables] : Sections) {
        if (Variables.size() < 2)
            continue;
        SmallVector<Type *> Types;
        SmallVector<unsigned> Indices;
        uint64_t Size = 0;
        Align Most;
        bool IsConstant = true;
        for (GlobalVariable *Each : Variables) {
            Align Own = Layout.getValueOrABITypeAlignment(Each->getAlign(), Each->getValueType());
            if (uint64_t Gap = offsetToAlignment(Size, Own)) {
                Types.push_back(ArrayType::get(Type::getInt8Ty(Context), Gap));
                Size += Gap;
            }
            Indices.push_back(Types.size());
            Types.push_back(Each->getValueType());
            Size += Layout.getTypeAllocSize(Each->getValueType());
            Most = std::max(Most, Own);
            IsConstant &= Each->isConstant();
        }
        auto *All = StructType::get(Context, Types, true);
        auto *Joined = new GlobalVariable(M, All, IsConstant, GlobalValue::InternalLinkage, Constant::getNullValue(All),
                                          "__devprof_joined", nullptr, GlobalValue::NotThreadLocal, Section.second);
        Joined->setSection(Section.first);
        Joined->setAlignment(Most);
        SmallPtrSet<Constant *, 16> Old(Variables.begin(), Variables.end());
        removeFromUsedLists(M, [&](Constant *Each) { return Old.contains(Each); });
        SmallVector<Constant *> Parts;
        for (Type *Each : Types)
            Parts.push_back(Constant::getNullValue(Each));
        const StructLayout *Places = Layout.getStructLayout(All);
        for (auto [Each, Index] : zip(Variables, Indices)) {
            Constant *Offset = ConstantInt::get(Type::getInt64Ty(Context), Places->getElementOffset(Index));
            Each->replaceAllUsesWith(ConstantExpr::getInBoundsPtrAdd(Joined, Offset));
        }
        for (auto [Each, Index] : zip(Variables, Indices)) {
            Parts[Index] = Each->getInitializer();
            Each->eraseFromParent();
        }
        Joined->setInitializer(ConstantStruct::get(All, Parts));
        appendToUsed(M, {Joined});
    }
}

} // namespace
