/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/open_file.h
Names of open files, for objects to preload into a server. */

#ifndef tests_server_open_file_h
#define tests_server_open_file_h

#include <unistd.h>

#include <climits>
#include <string>
#include <string_view>

/** @param[in]  file  descriptor of an open file
@return its path; empty for what has none */
inline std::string path_of(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t n = readlink(link.c_str(), path, sizeof(path));
  return n > 0 ? std::string(path, n) : std::string();
}

/** @param[in]  file    descriptor of an open file
@param[in]  suffix  the end of a name
@return whether the path of the file ends with it */
inline bool path_ends_with(int file, std::string_view suffix) {
  return path_of(file).ends_with(suffix);
}

#endif
