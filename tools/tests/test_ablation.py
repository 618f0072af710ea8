"""The table of rules and of the values that take them out: it has each constant, and names none that is gone."""

import unittest

import ablation
from spillway.common import Failure


class Table(unittest.TestCase):
    def setUp(self):
        self.rules, self.exempt = ablation.read_table()
        self.constants = ablation.policy_constants()

    def test_has_each_constant(self):
        for header, names in self.constants.items():
            missing = set(names) - set(self.rules.get(header, {})) - self.exempt
            self.assertEqual(missing, set(), f"{header}: unittest/ablation.toml lacks")

    def test_has_no_other(self):
        for header, values in self.rules.items():
            self.assertEqual(set(values) - set(self.constants[header]), set(), header)
        self.assertEqual(self.exempt - {name for names in self.constants.values() for name in names}, set())

    def test_each_value_is_another_one(self):
        for header, values in self.rules.items():
            text = (ablation.INNOBASE / header).read_text()
            for name, value in values.items():
                self.assertNotEqual(ablation.ablated(text, name, value), text)


class Ablated(unittest.TestCase):
    def test_value(self):
        text = "constexpr double A = 1.0;\nconstexpr unsigned long AB =\n    2;\n"
        self.assertEqual(ablation.ablated(text, "A", "3.0"), text.replace("1.0", "3.0"))
        self.assertIn("AB = 4;", ablation.ablated(text, "AB", "4"))
        with self.assertRaisesRegex(Failure, "C is defined 0 times"):
            ablation.ablated(text, "C", "1")

    def test_constants_of_a_header(self):
        text = "constexpr double A{1.0};\n  static constexpr uint64_t B_C = 2;\nconstexpr double f(double x) {\n"
        self.assertEqual(ablation.CONSTANT.findall(text), ["A", "B_C"])


if __name__ == "__main__":
    unittest.main()
