//! A C++ program that compiles only if this crate's constants, layouts, tables and signatures are those of AMD's
//! headers. `llvm-tests/simulator/abi.test` compiles it.

use crate::abi::{CONSTANTS, LAYOUTS};
use crate::api::{self, SHAPES};
use crate::{loader, plan, tools};
use std::fmt::Write;

const START: &str = r#"#define AMD_INTERNAL_BUILD
#include <cstddef>
#include <cstdint>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_api_trace_version.h>

// The sizes of a function's result and parameters.
template <class T> struct size { static constexpr size_t of = sizeof(T); };
template <> struct size<void> { static constexpr size_t of = 0; };
template <size_t... N> struct shape {};
template <class F> struct function;
template <class R, class... A> struct function<R (*)(A...)> { using is = shape<size<R>::of, sizeof(A)...>; };
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
"#;

/// The program's text.
pub fn program() -> String {
    let mut out = String::from(START);
    // Writing to a String cannot fail.
    let mut line = |text: std::fmt::Arguments| {
        let _ = writeln!(out, "{text}");
    };
    for (name, value) in CONSTANTS {
        line(format_args!(
            "static_assert(static_cast<uint64_t>({name}) == {value:#x}u, \"{name}\");"
        ));
    }
    for (name, size, fields) in LAYOUTS {
        line(format_args!(
            "static_assert(sizeof({name}) == {size}, \"{name}\");"
        ));
        for (field, offset) in *fields {
            line(format_args!(
                "static_assert(offsetof({name}, {field}) == {offset}, \"{name}::{field}\");"
            ));
        }
    }
    line(format_args!(
        "static_assert(HSA_API_TABLE_MAJOR_VERSION == {} && HSA_API_TABLE_STEP_VERSION == {});",
        tools::MAJOR,
        tools::STEP
    ));
    line(format_args!(
        "static_assert(sizeof(HsaApiTable) == {});",
        size_of::<tools::ApiTable>()
    ));
    for (field, offset) in [
        ("core_", std::mem::offset_of!(tools::ApiTable, core)),
        ("amd_ext_", std::mem::offset_of!(tools::ApiTable, amd_ext)),
        (
            "finalizer_ext_",
            std::mem::offset_of!(tools::ApiTable, finalizer_ext),
        ),
        (
            "image_ext_",
            std::mem::offset_of!(tools::ApiTable, image_ext),
        ),
        ("tools_", std::mem::offset_of!(tools::ApiTable, tools)),
        (
            "pc_sampling_ext_",
            std::mem::offset_of!(tools::ApiTable, pc_sampling_ext),
        ),
    ] {
        line(format_args!(
            "static_assert(offsetof(HsaApiTable, {field}) == {offset}, \"{field}\");"
        ));
    }
    for (name, size, major, step, functions) in SHAPES {
        // AMD's headers are those of ROCr 7.2.4.
        let (size, step, functions) = if *name == "AmdExtTable" {
            let version = api::amd_ext_7_2();
            let (known, _) = api::AMD_EXT_7_2;
            (version.minor as usize, version.step, &functions[..known])
        } else {
            (*size, *step, *functions)
        };
        let prefix = match *name {
            "CoreApiTable" => "HSA_CORE_API",
            "AmdExtTable" => "HSA_AMD_EXT_API",
            "FinalizerExtTable" => "HSA_FINALIZER_API",
            "ImageExtTable" => "HSA_IMAGE_API",
            "ToolsApiTable" => "HSA_TOOLS_API",
            other => {
                assert_eq!(other, "PcSamplingExtTable");
                "HSA_PC_SAMPLING_API"
            }
        };
        line(format_args!(
            "static_assert(sizeof({name}) == {size} && {prefix}_TABLE_MAJOR_VERSION == {major} && \
             {prefix}_TABLE_STEP_VERSION == {step}, \"{name}\");"
        ));
        for (n, (function, shape)) in functions.iter().enumerate() {
            let offset = size_of::<crate::abi::TableVersion>() + n * size_of::<usize>();
            line(format_args!(
                "static_assert(offsetof({name}, {function}_fn) == {offset}, \"{function}\");"
            ));
            if let Some((result, parameters)) = shape {
                let sizes: String = parameters.iter().map(|size| format!(", {size}")).collect();
                line(format_args!(
                    "static_assert(same<function<decltype({name}::{function}_fn)>::is, shape<{result}{sizes}>>, \
                     \"{function}\");"
                ));
            }
        }
    }
    for (minor, functions) in loader::FUNCTIONS.iter().enumerate() {
        let table = format!("hsa_ven_amd_loader_1_{minor:02}_pfn_t");
        line(format_args!(
            "static_assert(sizeof({table}) == {}, \"{table}\");",
            functions * size_of::<usize>()
        ));
        for (n, function) in plan::LOADER[..*functions].iter().enumerate() {
            line(format_args!(
                "static_assert(offsetof({table}, {function}) == {}, \"{function}\");",
                n * size_of::<usize>()
            ));
        }
    }
    out
}
