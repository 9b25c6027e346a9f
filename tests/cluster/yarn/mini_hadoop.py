"""A Hadoop cluster as a program: YARN with two node managers, and HDFS, in a single JVM, as in Hadoop's own tests.

The program writes the clients' configuration into a folder, prints the address of HDFS, and ends with its standard
input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pyspark.java_gateway import launch_gateway

_HDFS = "org.apache.hadoop.hdfs.MiniDFSCluster"
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
_OPTIONS = {
    "yarn.resourcemanager.scheduler.class": _SCHEDULER,
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",  # a disk that is nearly full would be none
}


def main() -> None:
    """Run the cluster in the first folder, with the jars of the second."""
    folder, jars = map(Path, sys.argv[1:])
    os.chdir(folder)
    path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {path} --driver-memory 1g pyspark-shell"
    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    _start_hdfs(gateway, options := jvm.org.apache.hadoop.conf.Configuration())
    _write(folder, _start_yarn(jvm, options))
    print("ready", options.get("fs.defaultFS"), flush=True)
    sys.stdin.read()


def _start_hdfs(gateway: Any, options: Any) -> None:
    """Start HDFS, whose address is among the options then."""
    classes, objects = gateway.new_array(gateway.jvm.Class, 1), gateway.new_array(gateway.jvm.Object, 1)
    classes[0], objects[0] = options.getClass(), options
    builder = gateway.jvm.Class.forName(f"{_HDFS}$Builder").getConstructor(classes).newInstance(objects)
    builder.numDataNodes(1).format(True).build().waitActive()


def _start_yarn(jvm: Any, options: Any) -> Any:
    """Start YARN, and return all options."""
    own = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(options)
    for name, value in _OPTIONS.items():
        own.set(name, value)
    cluster = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("cq", 2, 1, 1)
    cluster.init(own)
    cluster.start()
    assert cluster.waitForNodeManagersToConnect(240_000)
    return cluster.getConfig()


def _write(folder: Path, options: Any) -> None:
    """Write the addresses of the servers: other options name classes missing in clients."""
    root = ElementTree.Element("configuration")
    known = options.getPropsWithPrefix("yarn.resourcemanager.")
    wanted = {f"yarn.resourcemanager.{name}": known[name] for name in known if name.endswith("address")}
    for name, value in {**wanted, "fs.defaultFS": options.get("fs.defaultFS"), "dfs.replication": "1"}.items():
        one = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(one, "name").text = name
        ElementTree.SubElement(one, "value").text = value
    for file in _FILES:
        ElementTree.ElementTree(root).write(folder / file)


if __name__ == "__main__":
    main()
