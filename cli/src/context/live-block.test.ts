import { expect, test } from 'vitest';
import { createLiveBlock } from './live-block.ts';

/**
 * A terminal that supports only the features that the block needs: text, line feeds, cursor up, and erasing to the end
 * of the screen.
 */
function screen(columns: number, rows = 24) {
  const lines: string[] = [''];
  let row = 0;
  const sink = {
    isTTY: true,
    columns,
    rows,
    write(text: string) {
      for (const [, up, erase, feed, plain] of text.matchAll(/\u001b\[(\d+)A|\r?\u001b\[(0J)|(\n)|([^\u001b\n\r]+)/g)) {
        if (up !== undefined) row = Math.max(0, row - Number(up));
        else if (erase !== undefined) lines.splice(row, lines.length - row, '');
        else if (feed !== undefined) lines[++row] ??= '';
        else lines[row] += plain ?? '';
      }
    },
  };
  return { sink, shown: () => lines.filter((line) => line !== '') };
}

test('replaces the previous lines on each draw, and removes them on clear', () => {
  const { sink, shown } = screen(40);
  sink.write('$ muster apply\n');
  const block = createLiveBlock(sink, true);
  block.draw(['one', 'two', 'three']);
  block.draw(['1', '2']);
  expect(shown()).toEqual(['$ muster apply', '1', '2']);
  block.clear();
  expect(shown()).toEqual(['$ muster apply']);
  block.clear();
  block.draw(['again']);
  expect(shown()).toEqual(['$ muster apply', 'again']);
});

test('limits lines to the width of the window and the block to its height', () => {
  const { sink, shown } = screen(20, 4);
  createLiveBlock(sink, true).draw(['東京東京東京東京東京東京', 'b', 'c', 'd', 'e']);
  expect(shown()).toEqual(['東京東京東京東京東…', 'b', 'c']);
});

test('removes all wrapped rows after the window becomes narrower', () => {
  const { sink } = screen(40);
  const written: string[] = [];
  const block = createLiveBlock({ ...sink, write: (text: string) => written.push(text) }, true);
  const narrow = { columns: 40 };
  const resized = createLiveBlock(
    {
      isTTY: true,
      get columns() {
        return narrow.columns;
      },
      rows: 24,
      write: (text: string) => written.push(text),
    },
    true,
  );
  block.draw([]);
  resized.draw(['x'.repeat(35), 'y']);
  narrow.columns = 20;
  resized.draw(['z']);
  expect(written.at(-1)).toBe('\u001b[3A\r\u001b[0Jz\n');
});

test('writes nothing without a visible terminal', () => {
  const written: string[] = [];
  const block = createLiveBlock({ write: (text: string) => written.push(text) }, false);
  block.draw(['x']);
  block.clear();
  expect(written).toEqual([]);
});
