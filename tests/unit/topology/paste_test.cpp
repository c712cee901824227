#include "topology/paste.hpp"
