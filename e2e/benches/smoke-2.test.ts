import { runsInSmokeForm } from './smoke.ts';

runsInSmokeForm(1);
