//! Loads code objects into executables.

use super::State;
use crate::device::mapping::PAGE;
use crate::executables::code_object::{CodeObject, SymbolKind};
use crate::executables::kernel::{DESCRIPTOR_BYTES, Kernel};
use crate::executables::table::{Loaded, SymbolState, new_handle};
use crate::memory::allocations::Kind;
use crate::settings::isa::Isa;
use hsa_abi::*;

impl State {
    /// Destroys an executable and frees its code objects.
    pub fn destroy_executable(&mut self, handle: ExecutableHandle) -> Result<(), Status> {
        let executables = &mut self.executables;
        executables.get(handle)?;
        let Some(executable) = executables.all.remove(&handle) else {
            return Ok(());
        };
        for symbol in executable.symbols {
            executables.symbols.remove(&symbol);
        }
        for loaded in executable.loaded {
            executables.owners.remove(&loaded.handle);
            self.memory.free(loaded.range.start as usize, Kind::Code);
        }
        Ok(())
    }

    /// Loads the code object of a reader on an agent.
    pub fn load(
        &mut self,
        handle: ExecutableHandle,
        agent: AgentHandle,
        reader: ReaderHandle,
    ) -> Result<LoadedCodeObjectHandle, Status> {
        let (executables, memory) = (&mut self.executables, &mut self.memory);
        executables.unfrozen(handle)?;
        let (number, gpu) = self.agents.gpu(agent)?;
        let storage = executables.readers.get(&reader);
        let storage = storage.ok_or(Status::INVALID_CODE_OBJECT_READER)?.clone();
        let file = storage.bytes();
        let object = CodeObject::read(file).map_err(|error| {
            eprintln!("hsa-sim: {}: {error}", storage.uri());
            Status::INVALID_CODE_OBJECT
        })?;
        let isas = Isa::of_target(gpu.device.target);
        if !Isa::of_code(object.flags).is_some_and(|code| isas[0].runs(&code)) {
            return Err(Status::INVALID_ISA_NAME);
        }
        let executable = executables.get(handle)?;
        let size = (object.span.end - object.span.start) as usize;
        for symbol in &object.symbols {
            let is_defined = |agent| {
                executable
                    .defined
                    .contains_key(&(agent, symbol.name.clone()))
            };
            if is_defined(None) || is_defined(Some(number)) {
                return Err(Status::VARIABLE_ALREADY_DEFINED);
            }
        }
        let defined = executable
            .defined
            .iter()
            .filter(|((of, _), _)| of.is_none_or(|of| of == number))
            .map(|((_, name), &address)| (name.clone(), address))
            .collect();
        let base = memory
            .allocate(size, Kind::Code, number, 0, vec![number])
            .ok_or(Status::OUT_OF_RESOURCES)? as u64;
        let image = match object.image(file, base, &defined) {
            Ok(image) => image,
            Err(status) => {
                memory.free(base as usize, Kind::Code);
                return Err(status);
            }
        };
        let bytes = memory.host_address(base as usize) as *mut u8;
        for (n, page) in image.chunks(PAGE).enumerate() {
            // New memory is zero. (Slices are compared fast in builds without optimization, too.)
            if page != &[0; PAGE][..page.len()] {
                // SAFETY: the allocation is new and has the image's size.
                unsafe {
                    std::ptr::copy_nonoverlapping(page.as_ptr(), bytes.add(n * PAGE), page.len())
                };
            }
        }
        memory.invalidate(base as usize);
        let delta = base.wrapping_sub(object.span.start);
        let mut handles = Vec::new();
        for symbol in object.symbols {
            let at = symbol.address.wrapping_sub(object.span.start) as usize;
            let descriptor = image.get(at..at.saturating_add(DESCRIPTOR_BYTES));
            let kernel = match symbol.kind {
                SymbolKind::Kernel => descriptor.and_then(Kernel::read).unwrap_or_default(),
                SymbolKind::Variable { .. } => Kernel::default(),
            };
            let new = SymbolHandle(new_handle());
            handles.push(new);
            let symbol = SymbolState {
                executable: handle,
                agent: number,
                address: delta.wrapping_add(symbol.address),
                defined: symbol,
                kernel,
            };
            executables.symbols.insert(new, symbol);
        }
        let loaded = LoadedCodeObjectHandle(new_handle());
        executables.owners.insert(loaded, handle);
        let executable = executables.get(handle)?;
        executable.symbols.extend(handles);
        executable.loaded.push(Loaded {
            handle: loaded,
            executable: handle,
            agent: number,
            uri: storage.uri(),
            storage,
            range: base..base + size as u64,
            shadow: image,
            delta: delta as i64,
        });
        Ok(loaded)
    }
}
