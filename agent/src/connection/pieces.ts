import { limits } from '@muster/protocol/wire';

/** Maximum bytes of a piece as JSON text. Two frames with such pieces fit the window. */
const pieceBytes = 3_900;

/**
 * Cuts the JSON text of a large report into pieces whose frames fit the window. The concatenated pieces are the
 * original text, even if a cut splits a surrogate pair.
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
