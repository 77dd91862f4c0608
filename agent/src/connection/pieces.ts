import { limits } from '@muster/protocol/wire';

/** Maximum size of a chunk as JSON text, in bytes. Two frames with chunks of this size fit into the window. */
const pieceBytes = 3_900;

/**
 * Splits the JSON text of a large report into chunks whose frames fit the window. The concatenated chunks equal the
 * original text, even if a surrogate pair is split.
 */
export function cutIntoPieces(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let piece = text.slice(at, at + limits.reportPartLength);
    for (;;) {
      const bytes = Buffer.byteLength(JSON.stringify(piece));
      if (bytes <= pieceBytes) break;
      piece = piece.slice(0, Math.floor((piece.length * pieceBytes) / bytes));
    }
    pieces.push(piece);
    at += piece.length;
  }
  return pieces;
}
