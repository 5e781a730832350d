# The job that tests of launching and of failures start, kill and stop.
add_executable(par-test-job ${CMAKE_CURRENT_LIST_DIR}/Job/Job.cpp)
target_link_libraries(par-test-job PRIVATE par_comm)
add_dependencies(runtime-Comm-tests par-test-job par-run)
# Strangers speak the protocol with the runtime's own words.
target_include_directories(runtime-Comm-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)

# Forty ranks killed or stopped at random moments (the plain suite has four).
add_custom_target(kills
  COMMAND ${CMAKE_COMMAND} -E env PAR_LONG=1 $<TARGET_FILE:runtime-Comm-tests>
          --gtest_filter=Failures.ParRunRandomTrials
  DEPENDS runtime-Comm-tests USES_TERMINAL VERBATIM)

# An MPI that is none.
add_library(par-stub-mpi MODULE ${CMAKE_CURRENT_LIST_DIR}/Mpi/Stub.c)
set_target_properties(par-stub-mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stub-mpi)
target_compile_definitions(runtime-Comm-tests PRIVATE PAR_STUB_MPI="$<TARGET_FILE:par-stub-mpi>")
add_dependencies(runtime-Comm-tests par-stub-mpi)
