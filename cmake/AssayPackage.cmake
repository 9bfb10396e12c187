# What `cmake --install` lays out, and the Debian package that CPack makes of it:
#   bin/assay             what a verdict needs
#   lib/assay/            assay, the program with all commands; helpers, the python host, kernel.h, problems/, kernels/
#   share/                manual page, shell completions, JSON Schemas, documents
include(GNUInstallDirs)
# scripts/package gives it for a release. A package that was made without says that it is none.
set(ASSAY_PACKAGE_CONTACT "Unreleased build <unreleased@packages.example.org>" CACHE STRING
  "Maintainer of the Debian package, NAME <ADDRESS>")

# Written by the program itself, from the same tree of commands as --help.
set(ASSAY_SHELL_DIRECTORY ${CMAKE_BINARY_DIR}/shell)
file(MAKE_DIRECTORY ${ASSAY_SHELL_DIRECTORY})
add_custom_command(
  OUTPUT ${ASSAY_SHELL_DIRECTORY}/assay.1 ${ASSAY_SHELL_DIRECTORY}/assay.bash ${ASSAY_SHELL_DIRECTORY}/_assay
    ${ASSAY_SHELL_DIRECTORY}/assay.fish
  # Whatever the builder's own settings are.
  COMMAND ${CMAKE_COMMAND} -E env XDG_CONFIG_HOME=/nonexistent $<TARGET_FILE:assay> man --folder .
  COMMAND ${CMAKE_COMMAND} -E env XDG_CONFIG_HOME=/nonexistent $<TARGET_FILE:assay> completion bash > assay.bash
  COMMAND ${CMAKE_COMMAND} -E env XDG_CONFIG_HOME=/nonexistent $<TARGET_FILE:assay> completion zsh > _assay
  COMMAND ${CMAKE_COMMAND} -E env XDG_CONFIG_HOME=/nonexistent $<TARGET_FILE:assay> completion fish > assay.fish
  COMMAND sh -c "gzip -9nkf assay*.1"
  DEPENDS assay whole
  WORKING_DIRECTORY ${ASSAY_SHELL_DIRECTORY}
  VERBATIM)
add_custom_target(assay_shell_files ALL DEPENDS ${ASSAY_SHELL_DIRECTORY}/assay.1)

# The changelog in Debian's form, from CHANGELOG.md.
set(ASSAY_DEBIAN_DIRECTORY ${CMAKE_BINARY_DIR}/debian)
file(MAKE_DIRECTORY ${ASSAY_DEBIAN_DIRECTORY})
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_command(
  OUTPUT ${ASSAY_DEBIAN_DIRECTORY}/changelog.gz
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/debian_changelog.py
    ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${ASSAY_PACKAGE_CONTACT} > changelog
  COMMAND gzip -9nf changelog
  DEPENDS CHANGELOG.md cmake/debian_changelog.py
  WORKING_DIRECTORY ${ASSAY_DEBIAN_DIRECTORY}
  VERBATIM)
add_custom_target(assay_debian_files ALL DEPENDS ${ASSAY_DEBIAN_DIRECTORY}/changelog.gz)

install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS whole confine graft breakout native_host nvrtc_build RUNTIME DESTINATION lib/assay)
install(FILES src/gpu/judge_kernels.cu src/gpu/judge_tasks.h src/gpu/ceiling_kernels.cu
  src/gpu/ceiling_matrix.cu src/gpu/ceiling_wgmma.cu DESTINATION lib/assay/gpu)
install(TARGETS assay_host no_driver certificate tar LIBRARY DESTINATION lib/assay
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(DIRECTORY host/python/assay_host DESTINATION lib/assay/python FILES_MATCHING PATTERN "*.py")
install(DIRECTORY host/python/lean DESTINATION lib/assay)
install(FILES host/python/foreign.py DESTINATION lib/assay/python)
install(FILES include/assay/kernel.h DESTINATION lib/assay/include/assay)
install(FILES include/assay/kernel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay)
install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/assay/include/dlpack DESTINATION lib/assay/include)
install(DIRECTORY problems kernels DESTINATION lib/assay
  FILES_MATCHING PATTERN "*.py" PATTERN "*.toml" PATTERN "*.cpp" PATTERN "*.c" PATTERN "*.cu")
install(FILES examples/class/players.json bench/results/cpu-2core/machine.json DESTINATION lib/assay/examples)
install(FILES bench/results/cpu-2core/kernel_verdicts.jsonl DESTINATION lib/assay/examples RENAME verdicts.jsonl)
install(FILES bench/results/cpu-2core/example_searches.jsonl DESTINATION lib/assay/examples RENAME searches.jsonl)
# Raw results of ladders, where a ladder looks for them.
install(FILES bench/results/cpu-2core/ladders.jsonl DESTINATION lib/assay/bench/results/cpu-2core)
install(FILES bench/results/h100/ladders.jsonl bench/results/h100/attention_d64.jsonl
  bench/results/h100/convolution_best.jsonl DESTINATION lib/assay/bench/results/h100)
install(DIRECTORY examples/worklog DESTINATION lib/assay/examples)
install(DIRECTORY exports DESTINATION lib/assay PATTERN __pycache__ EXCLUDE)
install(DIRECTORY prompts DESTINATION lib/assay FILES_MATCHING PATTERN "*.md")
install(DIRECTORY ${ASSAY_SHELL_DIRECTORY}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
  FILES_MATCHING PATTERN "assay*.1.gz")
install(FILES ${ASSAY_SHELL_DIRECTORY}/assay.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME assay)
install(FILES ${ASSAY_SHELL_DIRECTORY}/_assay DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${ASSAY_SHELL_DIRECTORY}/assay.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
file(GLOB ASSAY_SCHEMAS CONFIGURE_DEPENDS docs/*.schema.json)
install(FILES ${ASSAY_SCHEMAS} DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/schemas)
file(GLOB ASSAY_PAGES CONFIGURE_DEPENDS docs/*.md)
install(FILES ${ASSAY_DEBIAN_DIRECTORY}/changelog.gz cmake/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/assay)
install(FILES cmake/debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME assay)
install(FILES README.md CHANGELOG.md LICENSE ${ASSAY_PAGES} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/assay)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_CONTACT "${ASSAY_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "judge of compute kernels")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Assay says whether a compute kernel is correct, whether it is faster than a
PyTorch reference, by how much, and how sure that is. Candidates run in a
sandbox, on values that they have never seen, beside the reference that they
are measured against.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# A judgement needs a compiler and the sandbox; PyTorch may come from elsewhere.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "bubblewrap (>= 0.8), g++")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-torch, libopenblas0-pthread")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "clang, libomp-dev")
include(CPack)
