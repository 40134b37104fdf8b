//! Opaque handles (hsa.h, hsa_ext_amd.h, hsa_ven_amd_loader.h): in C, structs with one `uint64_t handle`.

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u64);
    )*};
}

handles! {
    /// `hsa_agent_t`
    AgentHandle;
    /// `hsa_cache_t`
    CacheHandle;
    /// `hsa_code_object_reader_t`
    ReaderHandle;
    /// `hsa_code_object_t`
    CodeObjectHandle;
    /// `hsa_executable_t`
    ExecutableHandle;
    /// `hsa_executable_symbol_t`
    SymbolHandle;
    /// `hsa_isa_t`
    IsaHandle;
    /// `hsa_loaded_code_object_t`
    LoadedCodeObjectHandle;
    /// `hsa_amd_memory_pool_t`
    PoolHandle;
    /// `hsa_region_t`
    RegionHandle;
    /// `hsa_signal_t`: the address of the signal's [`AmdSignal`](crate::AmdSignal).
    SignalHandle;
    /// `hsa_wavefront_t`
    WavefrontHandle;
}
