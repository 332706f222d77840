"""The page's own words, by language; those of stages, figures and quantities come with them.

Must not know: what the page shows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Texts:
    """One language. Names in braces are filled in."""

    title: str
    opening: str
    run: str
    toy: str
    changes: str
    off: str
    marks: str
    again: str
    lines: str
    place: str
    ledger: str
    given: str
    columns: tuple[str, str, str, str, str, str, str, str]
    cut: str
    unedited: str
    whatif: str
    input: str
    weights: str
    output: str
    mixes: str
    notice: str


TEXTS = {
    "en": Texts(
        title="A Transformer block, stage by stage",
        opening="Every number on this page was computed by MiniMind's decoder block. "
        "Hover a number for its full value.",
        run="Run: {settings}",
        toy="the toy, as it is",
        changes="Changes:",
        off="off",
        marks='Changed numbers are <span class="changed">marked</span>, '
        'edited ones <span class="edited">framed</span>.',
        again="To open it again, put this behind the explorer's address: {query}",
        lines="The lines that ran",
        place="{file}, line {line}, {name}",
        ledger="Shape ledger",
        given="in",
        columns=("stage", "quantity", "axes", "shape", "dtype", "bytes", "FLOPs", "note"),
        cut="first {rows} × {cols} of {all_rows} × {all_cols}",
        unedited="unedited",
        whatif="{title}: {argument}",
        input="in",
        weights="weights",
        output="out",
        mixes="What mixes",
        notice="What to notice",
    ),
    "zh": Texts(
        title="逐阶段走完一个 Transformer 块",
        opening="本页的每个数都由 MiniMind 的解码器块算出。把指针移到一个数上可看到它的完整值。",
        run="运行：{settings}",
        toy="玩具示例，未作改动",
        changes="改动：",
        off="未生效",
        marks='变化了的数有<span class="changed">底色</span>，手动设定的数带<span class="edited">边框</span>。',
        again="要再次打开，把这段接在探索器的地址后面：{query}",
        lines="运行过的代码行",
        place="{file}，第 {line} 行，{name}",
        ledger="形状表",
        given="输入",
        columns=("阶段", "量", "轴", "形状", "数据类型", "字节", "浮点运算", "备注"),
        cut="{all_rows} × {all_cols} 中的前 {rows} × {cols}",
        unedited="未改动时为",
        whatif="{title}：{argument}",
        input="输入",
        weights="权重",
        output="输出",
        mixes="什么在混合",
        notice="值得注意",
    ),
}
