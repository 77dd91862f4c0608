import { limits } from '@muster/protocol/wire';

/** Bytes of one piece inside its frame: two pieces and what is around them fit the window together. */
const pieceBytes = 3_900;

/**
 * Cuts the JSON text of a large report into pieces that, encoded once more inside their frames, keep to the window.
 * Put together again they are the text, also where a cut falls between two halves of one character.
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
