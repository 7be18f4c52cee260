// The bodies of Asio and Beast, compiled once (see BOOST_ASIO_SEPARATE_COMPILATION in
// src/CMakeLists.txt): every other file that includes them then compiles in half the time.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
