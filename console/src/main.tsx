// First: before everything that makes style elements.
import './app/nonce.ts';
import './app/theme.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/app.tsx';
import { startSignIn } from './app/sign-in-link.ts';
import { startTheme } from './app/theme.ts';

startTheme();
startSignIn();
createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
