import { type Report, reportsSchema } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MemorySpool } from '../../test/memory-engine.ts';
import { cutIntoPieces } from './pieces.ts';
import { ReportSender } from './report-sender.ts';

const output = (stdout: string): Report => ({
  type: 'output',
  operation_id: '01HZZZZZZZZZZZZZZZZZZZ0001',
  resource: 'm/r',
  stdout,
  stderr: '',
  exit_code: 0,
  truncated: false,
});

/** Generates text with all kinds of characters, including unpaired surrogates. */
const anyText = (maxLength: number) =>
  fc
    .array(fc.oneof(fc.constantFrom('a', '"', '\\', '\n', '\u0000', 'é', '漢', '😀', '\ud83d', '\ude00')), {
      maxLength: 40,
    })
    .chain((units) => fc.nat(maxLength).map((length) => units.join('').padEnd(length, units.join('') || 'x')));

/** Simulates the orchestrator: checks the window, and replies when the test requests it. */
class Receiver {
  readonly received: { seq: number; reports: Report[] }[] = [];
  open: { seq: number; part: number | null; bytes: number }[] = [];
  worst = 0;
  private parts: string[] = [];

  take(text: string): void {
    const frame = JSON.parse(text);
    const bytes = Buffer.byteLength(text);
    let part: number | null = null;
    if (frame.type === 'report') this.received.push({ seq: frame.seq, reports: frame.reports });
    else {
      expect(frame.part).toBe(this.parts.length);
      this.parts.push(frame.text);
      if (frame.part === frame.parts - 1) {
        this.received.push({ seq: frame.seq, reports: JSON.parse(this.parts.join('')) });
        this.parts = [];
      } else part = frame.part;
    }
    this.open.push({ seq: frame.seq, part, bytes });
    this.worst = Math.max(
      this.worst,
      this.open.reduce((sum, { bytes }) => sum + bytes, 0),
    );
  }
}

describe('pieces', () => {
  test('splits a text into chunks that are small when encoded and concatenate to the same text', () => {
    fc.assert(
      fc.property(anyText(30_000), (text) => {
        const pieces = cutIntoPieces(text);
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) {
          expect(piece.length).toBeGreaterThan(0);
          expect(Buffer.byteLength(JSON.stringify(piece))).toBeLessThanOrEqual(3_900);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('the report sender', () => {
  test('sends everything once, in order, and within the window, for any order of acknowledgments', () => {
    fc.assert(
      fc.property(
        fc.array(anyText(12_000), { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.nat(3)),
        (texts, choices) => {
          const spool = new MemorySpool();
          const receiver = new Receiver();
          const sender = new ReportSender(
            spool,
            0,
            (text) => receiver.take(text),
            () => expect.unreachable(),
          );
          const expected = texts.map((text) => [output(text)]);
          for (const reports of expected) spool.add(reports);
          sender.pump();
          while (receiver.open.length > 0) {
            const credit = receiver.open.find((frame) => frame.part !== null);
            const unsplit = receiver.open.filter((frame) => frame.part === null);
            // Acknowledges several complete reports or one chunk.
            if (credit && (unsplit.length === 0 || choices.next().value === 0)) {
              receiver.open = receiver.open.filter((frame) => frame !== credit);
              sender.credited(credit.seq, credit.part!);
            } else {
              const seq = unsplit[choices.next().value % unsplit.length]!.seq;
              receiver.open = receiver.open.filter((frame) => frame.seq > seq);
              sender.acknowledged(seq);
            }
          }
          expect(receiver.received.map(({ reports }) => reports)).toEqual(
            expected.map((reports) => JSON.parse(JSON.stringify(reports))),
          );
          expect(receiver.received.map(({ seq }) => seq)).toEqual(expected.map((_, i) => i + 1));
          expect(receiver.worst).toBeLessThanOrEqual(8_192);
          expect(spool.entries).toEqual([]);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('resends an incomplete large report from its beginning on the next link', () => {
    const spool = new MemorySpool();
    spool.add([output('first')]);
    spool.add([output('"'.repeat(50_000))]);
    const cut = new Receiver();
    const before = new ReportSender(
      spool,
      0,
      (text) => cut.take(text),
      () => expect.unreachable(),
    );
    before.pump();
    cut.open.shift();
    before.acknowledged(1);
    for (let i = 0; i < 5; i++) {
      const { seq, part } = cut.open.shift()!;
      before.credited(seq, part!);
    }
    expect(cut.received.map(({ seq }) => seq)).toEqual([1]);

    const receiver = new Receiver();
    const after = new ReportSender(
      spool,
      1,
      (text) => receiver.take(text),
      () => expect.unreachable(),
    );
    after.pump();
    while (receiver.received.length === 0) {
      const { seq, part } = receiver.open.shift()!;
      after.credited(seq, part!);
    }
    expect(receiver.received).toMatchObject([{ seq: 2, reports: [{ stdout: '"'.repeat(50_000) }] }]);
    expect(reportsSchema.safeParse(receiver.received[0]!.reports).success).toBe(true);
  });

  test('skips and reports an entry that is too large for any link', () => {
    const spool = new MemorySpool();
    spool.add(Array.from({ length: 20 }, () => output('x'.repeat(250_000))));
    spool.add([output('after')]);
    const receiver = new Receiver();
    const tooLarge: number[] = [];
    const sender = new ReportSender(
      spool,
      0,
      (text) => receiver.take(text),
      (seq) => tooLarge.push(seq),
    );
    sender.pump();
    expect(tooLarge).toEqual([1]);
    expect(receiver.received.map(({ seq }) => seq)).toEqual([2]);
    sender.acknowledged(2);
    expect(spool.entries).toEqual([]);
  });
});
