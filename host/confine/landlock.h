// The file, network and signal rules that a process puts on itself before it runs foreign code.
// libc only.
#pragma once

// Everything visible may be read and executed; /tmp may be written, and /dev/null, /dev/zero and
// /dev/full; TCP, abstract sockets and signals of outside are closed, as far as this kernel's
// Landlock goes. Returns 0, also where the kernel has no Landlock, or errno. Requires no_new_privs.
int ApplyLandlock();
