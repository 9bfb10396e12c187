"""Entry: `python3 -B -s .../assay_host reference|candidate|opponent|build|mine`.

Descriptor 3 is the socket to the judge, descriptor 4 holds the lockdown filter; the builder and the
miner need neither. Files lie under $ASSAY_HOST_ROOT (default /): assay/, problem/, candidate/,
tmp/.
"""

import os
import sys

# Started by path, Python puts this folder first, where the names of our modules would hide others.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_FOLDER)] + [
    path for path in sys.path if os.path.abspath(path or ".") != _FOLDER
]


def main():
    role = sys.argv[1] if len(sys.argv) == 2 else ""
    if role == "build":
        from assay_host import build

        # A candidate's threads, or its work for the end of the interpreter, may never end.
        os._exit(build.main())
    if role == "mine":
        from assay_host import mine

        mine.main()
    if role not in ("reference", "candidate", "opponent"):
        sys.exit("usage: assay_host reference|candidate|opponent|build|mine")
    from assay_host import host

    host.main(role)


main()
