"""look.py REPORT OTHER TRACE: goes through a report's page as a reader with a keyboard, then with a pointer."""
import json
import pathlib
import re
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from browser import Browser

report, other, trace = sys.argv[1:4]


def said(browser, what="timeline"):
    return browser.run(f"document.getElementById('{what}-said').textContent")


def visible(browser, name):
    return browser.run(f"!document.getElementById('{name}').hidden")


def controls(browser):
    """The controls that Tab reaches, in order."""
    reached = []
    for _ in range(200):
        browser.press("Tab")
        name = browser.run("(e => e === document.body ? '' : e.id || e.textContent)(document.activeElement)")
        if not name or (reached and name == reached[0]):
            break
        reached.append(name)
    return reached


def keyboard(browser, facts):
    reached = controls(browser)
    wanted = browser.run("[...document.querySelectorAll('button, input, select, canvas, a, th[tabindex]')]"
                         ".filter(e => e.offsetParent !== null).map(e => e.id || e.textContent)")
    assert set(wanted) <= set(reached), f"the keyboard does not reach {set(wanted) - set(reached)}"
    print(f"{len(wanted)} controls, each reached by Tab")
    browser.run("document.getElementById('timeline').focus()")
    row = facts["timeline"]["rows"][0]
    assert said(browser).startswith("stage 0, rank"), said(browser)
    assert re.search(r"idle [\d.]+ [mµn]?s", said(browser)), said(browser)
    browser.press("Enter")
    first = facts["timeline"]["labels"][row["spans"][0][7]]
    assert first in said(browser), (first, said(browser))
    print("Enter says the first span:", "of microbatch 0" in said(browser))
    browser.press("ArrowDown")
    if len(facts["timeline"]["rows"]) > 1:
        assert "rank " in said(browser) and not said(browser).startswith("stage 0, rank 0:"), said(browser)
    before = browser.run("page.timeline.to - page.timeline.from")
    browser.press("+")
    assert browser.run("page.timeline.to - page.timeline.from") == before / 2
    browser.press("ArrowRight")
    assert browser.run("page.timeline.from") > 0
    browser.press("0")
    assert browser.run("page.timeline.to - page.timeline.from") == before
    browser.run("document.getElementById('memory-chart').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert said(browser, "memory").startswith("At "), said(browser, "memory")
    print("the memory chart says:", re.sub(r"[\d.]+ [KMGT]?i?B", "N", said(browser, "memory").split(": ")[1]))


BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def read(text, units):
    """"1.2 MiB" as a number; "" is 0."""
    return float(text.split()[0]) * units[text.split()[1]] if text else 0


def pointer(browser, facts):
    box = browser.run("(b => [b.left, b.top, b.width])(document.getElementById('timeline').getBoundingClientRect())")
    x = browser.run("page.timeline.x(page.rows ? 0 : page.timeline.rows[0].spans[0].start) + 1")
    browser.click(box[0] + x, box[1] + browser.run("page.timeline.top(0)") + 4)
    assert facts["timeline"]["labels"][facts["timeline"]["rows"][0]["spans"][0][7]] in said(browser), said(browser)
    cells = browser.run("[...document.querySelectorAll('#communication tbody tr')].map(e => "
                        "[4, 5, 6].map(at => e.children[at].textContent))")
    exposed = [read(text, {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}) for _, _, text in cells]
    assert exposed == sorted(exposed, reverse=True), exposed
    hidden = [read(size, BYTES) * int(count.replace(",", ""))
              for (size, count, _), ns in zip(cells, exposed) if ns == 0]
    assert all(one >= 0.98 * next for one, next in zip(hidden, hidden[1:])), hidden  # texts have three digits
    browser.run("[...document.querySelectorAll('#communication th')].find(e => e.textContent === 'bytes').click()")
    order = browser.run("[...document.querySelectorAll('#communication tbody tr')].map(e => e.children[4].textContent)")
    largest = max(row["bytes"] for row in facts["collectives"])
    sizes = [read(text, BYTES) for text in order]
    assert sizes == sorted(sizes, reverse=True) and abs(sizes[0] - largest) < 0.01 * largest, sizes[:5]
    dark = browser.run("document.getElementById('theme').click(), getComputedStyle(document.body).backgroundColor")
    assert dark == "rgb(20, 23, 27)", dark
    browser.run("document.getElementById('theme').click()")
    # A long table sorts all of its rows, shows some, and the rest by its button.
    counts = browser.run("(table => { const rows = () => table.querySelectorAll('tbody tr'), before = rows().length; "
                         "table.querySelector('th').click(); const first = rows()[0].textContent; "
                         "table.querySelector('button').click(); return [before, first, rows().length, "
                         "rows()[0].textContent, table.querySelectorAll('button').length]; })"
                         "(tableOf([{name: 'n', of: row => row, number: true}], [...Array(100).keys()]))")
    assert counts == [50, "99", 100, "99", 0], counts
    why = browser.run("planBody({keys: [{key: 'zero.level', value: '3', origin: 'x.yaml:4', reason: 'second 2'}]})"
                      ".map(e => e.textContent).join()")
    assert "why" in why and "second 2" in why, why  # of a plan that --write-plan wrote
    print("a click on a head sorts, the theme changes")


def printed(browser):
    """A dark page is printed light, and no table is cut off at the paper's edge."""
    browser.run("document.getElementById('theme').click()")
    browser.call("Emulation.setEmulatedMedia", media="print")
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(253, 253, 251)", ground
    browser.call("Emulation.setDeviceMetricsOverride", width=720, height=900, deviceScaleFactor=1, mobile=False)
    wide = browser.run("[...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().right - "
                       "document.body.getBoundingClientRect().right)")
    assert max(wide) <= 1, wide
    assert not browser.run("[...document.querySelectorAll('button, input')].some(e => e.offsetParent !== null)")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    browser.run("document.getElementById('theme').click()")
    print("printed light, with whole tables")


def beside(browser):
    browser.choose("#other", other)
    assert visible(browser, "difference") and visible(browser, "close-other")
    rows = browser.run("[...document.querySelectorAll('#difference tbody tr')].map(e => "
                       "[...e.children].map(cell => cell.textContent))")
    changed = {row[0] for row in rows}
    assert {"mesh", "predicted step", "use"} <= changed and "model" not in changed, changed
    figures = {row[0]: row[3] for row in rows}
    assert figures["use"] == "" and figures["predicted step"].endswith("%)"), figures
    bands = browser.run("page.timeline.bands.map(band => band.rows.length)")
    assert len(bands) == 2 and min(bands) > 0, bands
    print("another report: figures that differ, and its step below")
    browser.choose("#other", trace)
    bands = browser.run("page.timeline.bands.map(band => band.title)")
    assert bands[1].startswith("measured, step ") and bands[1].endswith("s"), bands
    rows = browser.run("[...document.querySelectorAll('#difference tbody tr')].map(e => e.children[0].textContent)")
    assert visible(browser, "difference") and rows[0] == "step" and "compute of a rank" in rows, rows
    sums = browser.run("page.timeline.bands[1].rows.map(row => [row.compute + row.communication + row.idle, "
                       "page.timeline.bands[1].end, row.communication, row.spans.reduce((sum, span) => sum + "
                       "span.exposed, 0), row.spans.every(span => span.exposed <= span.duration)])")
    # Streams of one rank may compute at once, so that a rank's parts are together at least the step.
    assert all(whole >= 0.999 * end and 0 < exposed <= summed and within
               for whole, end, exposed, summed, within in sums), sums
    kinds = browser.run("[...new Set(page.timeline.bands[1].rows.flatMap(row => row.spans.map(s => s.kind)))]")
    assert {"forward", "backward", "update", "communication"} <= set(kinds), kinds
    slots = browser.run("[...new Set(page.timeline.bands[1].rows[0].spans.filter(s => s.kind === 'forward')"
                        ".map(s => s.microbatch))].sort()")
    assert slots == [0, 1, 2, 3], slots
    print("a trace: the measured step below the predicted one")
    browser.run("document.getElementById('close-other').click()")
    assert browser.run("page.timeline.bands.length") == 1 and not visible(browser, "close-other")


def mistakes(browser):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [("a.json", "{"), ("b.json", "{}"), ("c.html", "<p>hello"), ("d.json", '{"par_report": 9}'),
                           ("e.json", '{"traceEvents": []}')]:
            pathlib.Path(folder, name).write_text(text)
            browser.choose("#other", pathlib.Path(folder, name))
            print(browser.run("document.getElementById('problem').textContent"))


with Browser() as browser:
    began = time.monotonic()
    browser.open(report)
    taken = time.monotonic() - began
    facts = json.loads(browser.run("document.getElementById('par-report').textContent"))
    assert not visible(browser, "problem")
    assert browser.run("document.title") == facts["model"]["name"] + " - Par report"
    assert browser.run("performance.getEntriesByType('resource').length") == 0, "the page asks for other files"
    keyboard(browser, facts)
    pointer(browser, facts)
    printed(browser)
    beside(browser)
    mistakes(browser)
    if len(sys.argv) > 4:
        browser.picture(sys.argv[4])
        print(f"opened in {taken:.2f} s")
