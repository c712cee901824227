// SPDX-License-Identifier: Apache-2.0
#include "unit/topology/paste_support.hpp"
