"""Reads a log directory as XProf's web server does, and the profiles in it with XProf's classes."""

import json
import os
import sys

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request
from xprof.profile_data import ProfileData
from xprof.profile_plugin_loader import ProfilePluginLoader
from xprof.standalone.base_plugin import TBContext
from xprof.standalone.plugin_event_multiplexer import DataProvider

logs = sys.argv[1]
plugin = ProfilePluginLoader().load(TBContext(logs, DataProvider(logs), TBContext.Flags(False)))


def page(run, tool, **hosts):
    query = {"run": run, "tag": tool, **hosts}
    data, _, _ = plugin.data_impl(Request(EnvironBuilder(query_string=query).get_environ()))
    assert data, f"XProf has no data for {tool}"
    return json.loads(data)


def table(data):
    """The rows of a table of Google's charts."""
    names = [column["id"] for column in data["cols"]]
    return [dict(zip(names, [cell["v"] for cell in row["c"]])) for row in data["rows"]]


def stats(event):
    """XProf does not resolve references here. The trace viewer shows the only stat that is one."""
    return {name: value for name, value in event.stats if name != "kernel_details"}


def planes(path):
    return {
        plane.name: {
            "stats": dict(plane.stats),
            "lines": {
                line.name: [
                    {"name": event.name, "start": event.start_ns, "duration": event.duration_ns, "stats": stats(event)}
                    for event in line.events
                ]
                for line in plane.lines
            },
        }
        for plane in ProfileData.from_file(path).planes
    }


found = []
for run in plugin.runs_imp():
    hosts = [host["hostname"] for host in plugin.host_impl(run, "trace_viewer")]
    for host in hosts:
        found.append(
            {
                "run": run,
                "host": host,
                "tools": plugin.run_tools_imp(run),
                "planes": planes(os.path.join(logs, "plugins", "profile", run, host + ".xplane.pb")),
                "kernels": table(page(run, "kernel_stats", host=host)),
                "overview": page(run, "overview_page", host=host),
                "trace": page(run, "trace_viewer", host=host),
                # All hosts in one view.
                "all_hosts": page(run, "trace_viewer@", hosts=",".join(hosts)) if len(hosts) > 1 else None,
            }
        )
json.dump(found, sys.stdout)
