#include "doctor/topology.h"

#include <hwloc.h>

#include <memory>

namespace assay {

Topology ReadTopology() {
  Topology found;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return found;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(
      raw, &hwloc_topology_destroy);
  if (hwloc_topology_load(raw) != 0) return found;
  found.packages = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE);
  found.cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  found.threads = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                      HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(raw, type, 0);
    if (cache == nullptr || cache->attr->cache.size == 0) continue;
    const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(raw, cache->cpuset, HWLOC_OBJ_CORE);
    found.caches.push_back(
        {static_cast<int>(cache->attr->cache.depth), cache->attr->cache.size, cores});
  }
  return found;
}

}  // namespace assay
