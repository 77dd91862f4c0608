import { markStyleElements } from './nonce.ts';

// Before any library is loaded: some make their style elements as soon as they are.
markStyleElements(document);
