"""The test case that several tests share: one reference host for all tests of a class."""

import unittest

from fake_judge import Judge, Refused


class JudgeCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judge = Judge()

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()

    def refused(self, source, number, *parts):
        """Loads a problem that must be refused with this failure, and with a text that has all
        parts.
        """
        with self.assertRaises(Refused) as caught:
            self.judge.load(source)
        self.assertEqual(caught.exception.number, number, caught.exception)
        text = self.judge.message()
        for part in parts:
            self.assertIn(part, text)
        self.assertNotIn("Traceback", text)
        self.assertLessEqual(len(text.splitlines()), 2)
